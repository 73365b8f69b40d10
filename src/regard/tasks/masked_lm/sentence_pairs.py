"""Rows of text for BERT: two segments of sentences, of which the second follows the first or comes from elsewhere.

As in Devlin 2019 (A.2): a row is filled with consecutive sentences of a document and divided at a random place; half
the time the second part gives way to sentences of another document. One row in ten is short, so that a model sees
short texts too. Unlike there, a document's last sentence, which nothing follows, is never a first segment: exactly
half of all pairs are true, whatever the lengths of the documents.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from regard.data.batches import num_samples
from regard.data.stores.documents import TokenizedDocuments

SHORT = 0.1  # of the rows have a random length
OTHER = 0.5  # of the pairs are no true ones
PAIR_SYMBOLS, TEXT_SYMBOLS = 3, 2  # begin and ends
PART = 1 << 24  # pieces whose rows are planned at a time: seconds of work, and memory for a large corpus too

# Where its segments begin and end in all pieces, and 1 if the second is from elsewhere, 0 if it truly follows.
Row = tuple[int, int, int, int, int]


def pair_rows(documents: TokenizedDocuments, some: Iterable[int], context: int, numbers: tuple[int, ...]) -> np.ndarray:
    """Pairs whose first segments are of these documents, in `context` positions, as rows of numbers (R, 5)."""
    chance = _Chance(numbers)
    rows = [row for number in some for row in _pairs_of(documents, number, context - PAIR_SYMBOLS, chance)]
    return np.array(rows, np.int64).reshape(-1, 5)


def text_rows(documents: TokenizedDocuments, some: Iterable[int], context: int, numbers: tuple[int, ...]) -> np.ndarray:
    """One segment a row: every piece of these documents once, in as many whole sentences as there is room for."""
    chance = _Chance(numbers)
    rows = [row for number in some for row in _texts_of(documents, number, context - TEXT_SYMBOLS, chance)]
    return np.array(rows, np.int64).reshape(-1, 5)


def parts(documents: TokenizedDocuments, size: int = PART) -> list[range]:
    """The documents in runs of about `size` pieces."""
    begins = documents.sentences[documents.documents[:-1]]
    borders = np.searchsorted(begins, np.arange(0, len(documents.ids), size))
    borders = np.unique([*borders.tolist(), len(documents)]).tolist()
    return [range(start, stop) for start, stop in pairwise(borders)]


def row_lengths(rows: np.ndarray, pairs: bool) -> np.ndarray:
    """How many positions each row takes, symbols counted."""
    special_ids = PAIR_SYMBOLS if pairs else TEXT_SYMBOLS
    lengths: np.ndarray = rows[:, 1] - rows[:, 0] + rows[:, 3] - rows[:, 2] + special_ids
    return lengths


def _pairs_of(documents: TokenizedDocuments, number: int, room: int, chance: "_Chance") -> Iterator[Row]:
    here, last = documents.documents[number : number + 2].tolist()
    while here + 1 < last:
        wanted = _wanted(room, chance)
        stop = _filled(documents, here, here + 2, last, wanted)
        middle = here + 1 + chance.below(stop - here - 1)
        first = _pieces(documents, here, middle)
        if chance.happens(OTHER):
            other = _elsewhere(documents, number, wanted - (first[1] - first[0]), chance)
            yield _cut(first, other, room, chance, 1)
            here = middle  # what would have followed is still to come
        else:
            yield _cut(first, _pieces(documents, middle, stop), room, chance, 0)
            here = stop


def _texts_of(documents: TokenizedDocuments, number: int, room: int, chance: "_Chance") -> Iterator[Row]:
    sentence, last = documents.documents[number : number + 2].tolist()
    here, end = _pieces(documents, sentence, last)
    while here < end:
        stop = min(here + _wanted(room, chance), end)
        sentence = bisect_right(documents.sentences, stop, sentence, min(last, sentence + room) + 1) - 1
        whole = int(documents.sentences[sentence])
        if whole > here:  # else a sentence is longer than the row, and goes on in the next
            stop = whole
        yield here, stop, stop, stop, 0
        here = stop


def _elsewhere(documents: TokenizedDocuments, number: int, wanted: int, chance: "_Chance") -> tuple[int, int]:
    """Sentences from a random place of another document, so many that they have `wanted` pieces."""
    other = chance.below(len(documents) - 1)
    begin, last = documents.documents[other + (other >= number) :][:2].tolist()
    begin += chance.below(last - begin)
    return _pieces(documents, begin, _filled(documents, begin, begin + 1, last, wanted))


def _wanted(room: int, chance: "_Chance") -> int:
    return 2 + chance.below(room - 1) if chance.happens(SHORT) else room


def _filled(documents: TokenizedDocuments, begin: int, least: int, last: int, wanted: int) -> int:
    """The first sentence from `least` on at which there are `wanted` pieces since `begin`; at the latest the last."""
    most = max(least, min(last, begin + wanted))  # a sentence has a piece at least
    return bisect_left(documents.sentences, documents.sentences[begin] + wanted, least, most)


def _pieces(documents: TokenizedDocuments, start: int, stop: int) -> tuple[int, int]:
    return int(documents.sentences[start]), int(documents.sentences[stop])


def _cut(first: tuple[int, int], second: tuple[int, int], room: int, chance: "_Chance", label: int) -> Row:
    """Two segments made to fit: the longer gives way first, at its beginning or its end as chance has it."""
    one, other = first[1] - first[0], second[1] - second[0]
    if one + other > room:
        shorter = min(one, other, room // 2)
        kept = (shorter, room - shorter) if one <= other else (room - shorter, shorter)
        first, second = (
            _shortened(segment, length, chance) for segment, length in zip((first, second), kept, strict=True)
        )
    return *first, *second, label


def _shortened(segment: tuple[int, int], length: int, chance: "_Chance") -> tuple[int, int]:
    start = segment[0] + chance.below(segment[1] - segment[0] - length + 1)
    return start, start + length


class _Chance:
    """Random numbers one after another, the same for ever for the same `numbers`."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._stream = self._numbers(numbers)

    @staticmethod
    def _numbers(numbers: tuple[int, ...]) -> Iterator[int]:
        block = 0
        while True:
            yield from num_samples(4096, *numbers, block).tolist()
            block += 1

    def below(self, count: int) -> int:
        return next(self._stream) % count

    def happens(self, share: float) -> bool:
        return next(self._stream) < share * 2**64
