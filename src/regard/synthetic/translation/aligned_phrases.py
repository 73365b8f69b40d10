"""Aligned phrases: some English words, their Spanish words, and the links between them.

Phrases are combined into larger ones up to a sentence. English and Spanish may order the same parts differently; the
links follow.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Link = tuple[int, int]  # (source index, target index)

# Inside a phrase a link is the number source * LINK_BASE + target, so that moving the phrase is one addition.
LINK_BASE = 64
_LINKS = tuple(divmod(number, LINK_BASE) for number in range(LINK_BASE * LINK_BASE))
_CONTRACTIONS = {"a": "al", "de": "del"}


class AlignedPhrase(NamedTuple):
    """Words of both languages and the links between them.

    `sure` are the links that every annotator would draw. `possible` are further links that may be drawn or
    left out (Och and Ney 2003), such as `do` with the Spanish verb. `head` is the source word to which other
    phrases link.
    """

    source: Sequence[str]
    target: Sequence[str]
    sure: Sequence[int] = ()
    possible: Sequence[int] = ()
    head: int = 0


EMPTY = AlignedPhrase((), ())


def aligned_phrase(source: str, target: str, links: str = "") -> AlignedPhrase:
    """A phrase from text. Links are written `0-0 0~1`: a dash is sure, a tilde possible; by default first to first."""
    marks = links.split() or (["0-0"] if source and target else [])
    sure = tuple(_number(mark, "-") for mark in marks if "-" in mark)
    possible = tuple(_number(mark, "~") for mark in marks if "~" in mark)
    return AlignedPhrase(tuple(source.split()), tuple(target.split()), sure, possible)


def decode_links(numbers: Iterable[int]) -> frozenset[Link]:
    """The links of a finished phrase as (source index, target index)."""
    return frozenset(map(_LINKS.__getitem__, numbers))


def arrange(
    parts: Sequence[AlignedPhrase], source: Sequence[int], target: Sequence[int], loose: Sequence[tuple[int, int]] = ()
) -> AlignedPhrase:
    """One phrase from many. `source` and `target` are the orders of the parts in English and Spanish.

    Each (part, other) in `loose` adds a possible link from the head of one part to the first Spanish word of the
    other.
    """
    target_words: list[str] = []
    starts = [0] * len(parts)
    for number in target:
        part = parts[number]
        if part is not EMPTY:
            starts[number] = len(target_words)
            target_words += part[1]
    source_words: list[str] = []
    heads = [0] * len(parts)
    sure: list[int] = []
    possible: list[int] = []
    for number in source:
        part = parts[number]
        if part is EMPTY:
            continue
        words, _, part_sure, part_possible, head = part
        at = len(source_words)
        heads[number] = at + head
        source_words += words
        shift = at * LINK_BASE + starts[number]
        for link in part_sure:
            sure.append(link + shift)
        for link in part_possible:
            possible.append(link + shift)
    for number, other in loose:
        possible.append(heads[number] * LINK_BASE + starts[other])
    return AlignedPhrase(source_words, target_words, sure, possible)


def concatenate(*parts: AlignedPhrase) -> AlignedPhrase:
    """Phrases in the same order in both languages."""
    order = range(len(parts))
    return arrange(parts, order, order)


def prepend_preposition(preposition: AlignedPhrase, phrase: AlignedPhrase) -> AlignedPhrase:
    """A preposition before a phrase; `a el` becomes `al`, `de el` becomes `del`.

    A preposition that only Spanish has (the personal `a`) gets possible links to the first word of the phrase and
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
    shift = at * LINK_BASE + to
    sure = [*preposition.sure, *[link + shift for link in phrase.sure]]
    possible = [*preposition.possible, *[link + shift for link in phrase.possible]]
    head = phrase.head + at
    if not at:
        possible += (last, head * LINK_BASE + last)
    return AlignedPhrase([*preposition.source, *phrase.source], words, sure, possible, head)


def _number(mark: str, sign: str) -> int:
    source, target = mark.split(sign)
    return int(source) * LINK_BASE + int(target)
