"""A piece: some English words, their Spanish words, and which belongs to which.

Pieces are joined into larger ones until they are a sentence. English and Spanish may take the same pieces in
a different order; the links follow by themselves.
"""

from collections.abc import Sequence
from typing import NamedTuple

Link = tuple[int, int]  # (source index, target index)

_CONTRACTIONS = {"a": "al", "de": "del"}


class Piece(NamedTuple):
    """Words of both languages and the links between them.

    `sure` are the links every translator would draw. `possible` are the further ones that may be drawn or
    left out (Och and Ney 2003), such as `do` with the Spanish verb. `head` is the source word that stands
    for the piece when another piece links to it.
    """

    source: Sequence[str]
    target: Sequence[str]
    sure: Sequence[Link] = ()
    possible: Sequence[Link] = ()
    head: int = 0


NOTHING = Piece((), ())


def piece(source: str, target: str, links: str = "") -> Piece:
    """A piece from text. Links read `0-0 0~1`: a dash is sure, a tilde possible; none given: first to first."""
    marks = links.split() or (["0-0"] if source and target else [])
    sure = tuple(_link(mark, "-") for mark in marks if "-" in mark)
    possible = tuple(_link(mark, "~") for mark in marks if "~" in mark)
    return Piece(tuple(source.split()), tuple(target.split()), sure, possible)


def join(source: list[Piece], target: list[Piece], loose: Sequence[tuple[Piece, Piece]] = ()) -> Piece:
    """One piece from many: the English reads `source` in its order, the Spanish reads `target` in its own.

    Each pair in `loose` adds a possible link, from the head of one piece to the first Spanish word of the
    other. A piece stands at most once in either list.
    """
    source_words: list[str] = []
    target_words: list[str] = []
    starts: dict[int, int] = {}
    for part in target:
        starts[id(part)] = len(target_words)
        target_words += part.target
    sure: list[Link] = []
    possible: list[Link] = []
    heads: dict[int, int] = {}
    for part in source:
        words, _, part_sure, part_possible, head = part
        at = len(source_words)
        source_words += words
        heads[id(part)] = at + head
        if part_sure:
            to = starts[id(part)]
            sure += [(i + at, j + to) for i, j in part_sure]
            if part_possible:
                possible += [(i + at, j + to) for i, j in part_possible]
    for one, other in loose:
        possible.append((heads[id(one)], starts[id(other)]))
    return Piece(source_words, target_words, sure, possible)


def chain(parts: list[Piece]) -> Piece:
    """Pieces that stand in the same order in both languages."""
    return join(parts, parts)


def introduce(preposition: Piece, phrase: Piece) -> Piece:
    """A preposition before a phrase; `a el` becomes `al`, `de el` becomes `del`.

    A preposition that only Spanish has (the personal `a`) links possibly to the first word of the phrase and
    to its head.
    """
    at = len(preposition.source)
    words = list(preposition.target)
    to = len(words)
    last = to - 1
    rest = phrase.target
    if rest[0] == "el" and words[last] in _CONTRACTIONS:
        words[last] = _CONTRACTIONS[words[last]]
        rest = rest[1:]
        to = last
    sure = [*preposition.sure, *((i + at, j + to) for i, j in phrase.sure)]
    possible = [*preposition.possible, *((i + at, j + to) for i, j in phrase.possible)]
    head = phrase.head + at
    if not at:
        possible += ((0, last), (head, last))
    return Piece([*preposition.source, *phrase.source], [*words, *rest], sure, possible, head)


def _link(mark: str, sign: str) -> Link:
    source, target = mark.split(sign)
    return int(source), int(target)
