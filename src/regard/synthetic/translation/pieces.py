"""A piece: some English words, their Spanish words, and which belongs to which.

Pieces are put together into larger ones until they are a sentence. English and Spanish may take the same pieces
in a different order; the links follow by themselves.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Link = tuple[int, int]  # (source index, target index)

# Inside a piece a link is the number source * ROW + target, so that moving the piece is one addition.
ROW = 64
_LINKS = tuple(divmod(number, ROW) for number in range(ROW * ROW))
_CONTRACTIONS = {"a": "al", "de": "del"}


class Piece(NamedTuple):
    """Words of both languages and the links between them.

    `sure` are the links every translator would draw. `possible` are the further ones that may be drawn or
    left out (Och and Ney 2003), such as `do` with the Spanish verb. `head` is the source word that stands
    for the piece when another piece links to it.
    """

    source: Sequence[str]
    target: Sequence[str]
    sure: Sequence[int] = ()
    possible: Sequence[int] = ()
    head: int = 0


NOTHING = Piece((), ())


def piece(source: str, target: str, links: str = "") -> Piece:
    """A piece from text. Links read `0-0 0~1`: a dash is sure, a tilde possible; none given: first to first."""
    marks = links.split() or (["0-0"] if source and target else [])
    sure = tuple(_number(mark, "-") for mark in marks if "-" in mark)
    possible = tuple(_number(mark, "~") for mark in marks if "~" in mark)
    return Piece(tuple(source.split()), tuple(target.split()), sure, possible)


def links(numbers: Iterable[int]) -> frozenset[Link]:
    """The links of a finished piece as (source index, target index)."""
    return frozenset(map(_LINKS.__getitem__, numbers))


def arrange(
    parts: Sequence[Piece], source: Sequence[int], target: Sequence[int], loose: Sequence[tuple[int, int]] = ()
) -> Piece:
    """One piece from many. `source` and `target` are the orders in which English and Spanish take the parts.

    Each (part, other) in `loose` adds a possible link from the head of one part to the first Spanish word of the
    other.
    """
    target_words: list[str] = []
    starts = [0] * len(parts)
    for number in target:
        part = parts[number]
        if part is not NOTHING:
            starts[number] = len(target_words)
            target_words += part[1]
    source_words: list[str] = []
    heads = [0] * len(parts)
    sure: list[int] = []
    possible: list[int] = []
    for number in source:
        part = parts[number]
        if part is NOTHING:
            continue
        words, _, part_sure, part_possible, head = part
        at = len(source_words)
        heads[number] = at + head
        source_words += words
        shift = at * ROW + starts[number]
        for link in part_sure:
            sure.append(link + shift)
        for link in part_possible:
            possible.append(link + shift)
    for number, other in loose:
        possible.append(heads[number] * ROW + starts[other])
    return Piece(source_words, target_words, sure, possible)


def chain(*parts: Piece) -> Piece:
    """Pieces that stand in the same order in both languages."""
    order = range(len(parts))
    return arrange(parts, order, order)


def introduce(preposition: Piece, phrase: Piece) -> Piece:
    """A preposition before a phrase; `a el` becomes `al`, `de el` becomes `del`.

    A preposition that only Spanish has (the personal `a`) links possibly to the first word of the phrase and
    to its head.
    """
    at = len(preposition.source)
    words = [*preposition.target]
    to = len(words)
    last = to - 1
    if phrase.target[0] == "el" and words[last] in _CONTRACTIONS:
        words[last] = _CONTRACTIONS[words[last]]
        words += phrase.target[1:]
        to = last
    else:
        words += phrase.target
    shift = at * ROW + to
    sure = [*preposition.sure, *[link + shift for link in phrase.sure]]
    possible = [*preposition.possible, *[link + shift for link in phrase.possible]]
    head = phrase.head + at
    if not at:
        possible += (last, head * ROW + last)
    return Piece([*preposition.source, *phrase.source], words, sure, possible, head)


def _number(mark: str, sign: str) -> int:
    source, target = mark.split(sign)
    return int(source) * ROW + int(target)
