"""Passages: several synthetic sentences joined into one long pair, with their links."""

from collections.abc import Iterator, Sequence

from regard.synthetic.translation.aligned_phrases import Link
from regard.synthetic.translation.sampling import Split
from regard.synthetic.translation.sentences import Pair, sentence

STOP = "."


def passages(count: int, *, most: int, start: int = 0, seed: int = 0, split: Split = "train") -> Iterator[Pair]:
    """Passages `start` to `start + count - 1`, of one sentence, two, and so on up to `most`, then one again."""
    for index in range(start, start + count):
        numbers = range(index * most, index * most + index % most + 1)
        yield joined([sentence(number, seed=seed, split=split) for number in numbers])


def joined(pairs: Sequence[Pair]) -> Pair:
    """Join pairs into one, with full stops between them except after question marks."""
    whole = pairs[0]
    for pair in pairs[1:]:
        whole = _followed(whole, pair)
    return whole


def _followed(one: Pair, other: Pair) -> Pair:
    stop = () if one.source_words[-1] == "?" else (STOP,)
    source, target = one.source_words + stop, one.target_words + stop
    between = {(len(one.source_words), len(one.target_words))} if stop else set()

    def moved(links: frozenset[Link]) -> set[Link]:
        return {(i + len(source), j + len(target)) for i, j in links}

    space = f"{STOP} " if stop else " "
    return Pair(
        one.source + space + other.source,
        one.target + space + other.target,
        source + other.source_words,
        target + other.target_words,
        one.sure | between | moved(other.sure),
        one.possible | between | moved(other.possible),
    )
