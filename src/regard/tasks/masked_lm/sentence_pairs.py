"""Sentence pairs for BERT's next-sentence prediction: two segments, of which the second follows the first or not.

As in Devlin 2019 (A.2): a row is filled with consecutive sentences of a document and split at a random sentence; half
the time the second segment is replaced by sentences of another document. One row in ten is short, so that a model sees
short texts too. Unlike there, a document's last sentence, which nothing follows, is never a first segment: exactly
half of all pairs are true, whatever the lengths of the documents.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from regard.data.batches import random_uint64
from regard.data.stores.documents import TokenizedDocuments

SHORT_SHARE = 0.1  # of the rows have a random length
FALSE_SHARE = 0.5  # of the pairs have a second segment from another document
PAIR_SPECIAL_IDS, TEXT_SPECIAL_IDS = 3, 2  # in a row: [CLS] and [SEP]
PART_TOKENS = 1 << 24  # planned at a time, to bound time and memory for a large corpus

# Start and stop of both segments in the ids, and 1 if the second is from elsewhere, 0 if it follows the first.
Row = tuple[int, int, int, int, int]


def pair_rows(documents: TokenizedDocuments, some: Iterable[int], context: int, numbers: tuple[int, ...]) -> np.ndarray:
    """Pairs whose first segments are from these documents, in `context` positions, as an array (R, 5) of rows."""
    random = _Random(numbers)
    rows = [row for number in some for row in _pairs_of(documents, number, context - PAIR_SPECIAL_IDS, random)]
    return np.array(rows, np.int64).reshape(-1, 5)


def text_rows(documents: TokenizedDocuments, some: Iterable[int], context: int, numbers: tuple[int, ...]) -> np.ndarray:
    """One segment a row: every token of these documents once, in as many whole sentences as fit."""
    random = _Random(numbers)
    rows = [row for number in some for row in _texts_of(documents, number, context - TEXT_SPECIAL_IDS, random)]
    return np.array(rows, np.int64).reshape(-1, 5)


def parts(documents: TokenizedDocuments, size: int = PART_TOKENS) -> list[range]:
    """The documents in ranges of about `size` tokens."""
    begins = documents.sentences[documents.documents[:-1]]
    borders = np.searchsorted(begins, np.arange(0, len(documents.ids), size))
    borders = np.unique([*borders.tolist(), len(documents)]).tolist()
    return [range(start, stop) for start, stop in pairwise(borders)]


def row_lengths(rows: np.ndarray, pairs: bool) -> np.ndarray:
    """How many positions each row takes, special ids included."""
    special_ids = PAIR_SPECIAL_IDS if pairs else TEXT_SPECIAL_IDS
    lengths: np.ndarray = rows[:, 1] - rows[:, 0] + rows[:, 3] - rows[:, 2] + special_ids
    return lengths


def _pairs_of(documents: TokenizedDocuments, number: int, room: int, random: "_Random") -> Iterator[Row]:
    here, last = documents.documents[number : number + 2].tolist()
    while here + 1 < last:
        wanted = _wanted(room, random)
        stop = _filled(documents, here, here + 2, last, wanted)
        middle = here + 1 + random.below(stop - here - 1)
        first = _span(documents, here, middle)
        if random.happens(FALSE_SHARE):
            other = _elsewhere(documents, number, wanted - (first[1] - first[0]), random)
            yield _truncate(first, other, room, random, 1)
            here = middle  # what would have followed comes in a later row
        else:
            yield _truncate(first, _span(documents, middle, stop), room, random, 0)
            here = stop


def _texts_of(documents: TokenizedDocuments, number: int, room: int, random: "_Random") -> Iterator[Row]:
    sentence, last = documents.documents[number : number + 2].tolist()
    here, end = _span(documents, sentence, last)
    while here < end:
        stop = min(here + _wanted(room, random), end)
        sentence = bisect_right(documents.sentences, stop, sentence, min(last, sentence + room) + 1) - 1
        whole = int(documents.sentences[sentence])
        if whole > here:  # else a sentence is longer than the row, and continues in the next
            stop = whole
        yield here, stop, stop, stop, 0
        here = stop


def _elsewhere(documents: TokenizedDocuments, number: int, wanted: int, random: "_Random") -> tuple[int, int]:
    """Sentences from a random position of another document, with `wanted` tokens or more."""
    other = random.below(len(documents) - 1)
    begin, last = documents.documents[other + (other >= number) :][:2].tolist()
    begin += random.below(last - begin)
    return _span(documents, begin, _filled(documents, begin, begin + 1, last, wanted))


def _wanted(room: int, random: "_Random") -> int:
    return 2 + random.below(room - 1) if random.happens(SHORT_SHARE) else room


def _filled(documents: TokenizedDocuments, begin: int, least: int, last: int, wanted: int) -> int:
    """The first sentence from `least` on with `wanted` tokens since `begin`; at most the last."""
    most = max(least, min(last, begin + wanted))  # a sentence has a token at least
    return bisect_left(documents.sentences, documents.sentences[begin] + wanted, least, most)


def _span(documents: TokenizedDocuments, start: int, stop: int) -> tuple[int, int]:
    return int(documents.sentences[start]), int(documents.sentences[stop])


def _truncate(first: tuple[int, int], second: tuple[int, int], room: int, random: "_Random", label: int) -> Row:
    """Truncate two segments to fit: the longer first, at a random side."""
    one, other = first[1] - first[0], second[1] - second[0]
    if one + other > room:
        shorter = min(one, other, room // 2)
        kept = (shorter, room - shorter) if one <= other else (room - shorter, shorter)
        first, second = (
            _shortened(segment, length, random) for segment, length in zip((first, second), kept, strict=True)
        )
    return *first, *second, label


def _shortened(segment: tuple[int, int], length: int, random: "_Random") -> tuple[int, int]:
    start = segment[0] + random.below(segment[1] - segment[0] - length + 1)
    return start, start + length


class _Random:
    """A stream of random numbers, a function of `numbers` alone."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._stream = self._numbers(numbers)

    @staticmethod
    def _numbers(numbers: tuple[int, ...]) -> Iterator[int]:
        block = 0
        while True:
            yield from random_uint64(4096, *numbers, block).tolist()
            block += 1

    def below(self, count: int) -> int:
        return next(self._stream) % count

    def happens(self, share: float) -> bool:
        return next(self._stream) < share * 2**64
