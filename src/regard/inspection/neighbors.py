"""Which words lie near which: neighbors, analogies, and how two sets of vectors agree.

Cosine: of the angle between two vectors, from -1 to 1; a vector of zeros has the cosine 0 with all. Distance: Euclid's.
"""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.data.readers.word_vectors import WordVectors
from regard.errors import InputError

BLOCK = 1 << 14  # rows whose differences are held at once
By = Literal["cosine", "euclidean"]


@dataclass(frozen=True)
class Neighbor:
    """A word, and how near it is."""

    word: str
    cosine: float
    distance: float


@dataclass(frozen=True)
class Agreement:
    """How alike two sets of vectors arrange the words they share."""

    words: int
    correlation: float  # of the cosines of all pairs of these words, from -1 to 1


def nearest(vectors: WordVectors, word: str | np.ndarray, *, count: int = 10, by: By = "cosine") -> list[Neighbor]:
    """The words nearest to a word, which is left out itself, or to a vector; the nearest first."""
    if isinstance(word, str):
        place = _place(vectors, word)
        return _nearest(vectors, vectors.matrix[place], count, by, leaving={place})
    return _nearest(vectors, np.asarray(word, np.float32), count, by)


def analogy(vectors: WordVectors, a: str, b: str, c: str, count: int = 10) -> list[Neighbor]:
    """a is to b as c is to which word? The nearest to b - a + c but for the three (Mikolov 2013).

    All vectors have length 1 here; so the distance is of such vectors too.
    """
    places = [_place(vectors, word) for word in (a, b, c)]
    even = WordVectors(vectors.words, units(vectors.matrix))
    first, second, third = even.matrix[places]
    return _nearest(even, second - first + third, count, "cosine", leaving=set(places))


def compare(vectors: WordVectors, one: str, other: str) -> Neighbor:
    """How near the other word is to the one."""
    first, second = (vectors.matrix[_place(vectors, word)] for word in (one, other))
    return Neighbor(other, *_nearness(first, second[None])[0])


def shared(one: WordVectors, other: WordVectors, most: int = 2000) -> Agreement:
    """How two sets of vectors, of any widths, agree on the words that both have, the first `most` of them."""
    words = [word for word in one.words if word in other.rows][:most]
    if len(words) < 3:
        raise InputError(f"the two sets of vectors share {len(words)} words; wanted 3 or more to compare")
    pairs = np.triu_indices(len(words), 1)
    cosines = []
    for vectors in (one, other):
        found = units(vectors.matrix[[vectors.rows[word] for word in words]])
        cosines.append((found @ found.T)[pairs].astype(np.float64))
    if min(np.ptp(each) for each in cosines) == 0:
        raise InputError(
            f"the {len(words)} shared words are all equally far apart in one of the sets: nothing to compare"
        )
    return Agreement(len(words), float(np.corrcoef(*cosines)[0, 1]))


def near_spellings(word: str, words: Sequence[str]) -> list[str]:
    """Up to three words written like this one: in other letters first, then with few letters changed."""
    cased = [each for each in words if each.casefold() == word.casefold()]
    # Of a million words only those that can be alike; files have the common ones first.
    likely = [each for each in words if abs(len(each) - len(word)) <= 2 and set(each[:2]) & set(word[:2])][:20_000]
    close = difflib.get_close_matches(word, likely, n=3, cutoff=0.6)
    return list(dict.fromkeys([*cased, *close]))[:3]


def _place(vectors: WordVectors, word: str) -> int:
    if word in vectors.rows:
        return vectors.rows[word]
    near = near_spellings(word, vectors.words)
    hint = f"did you mean {' or '.join(near)}?" if near else "none is written like it"
    raise InputError(f"{word!r} is not among the {len(vectors.words):,} words; {hint}")


def _nearest(
    vectors: WordVectors, vector: np.ndarray, count: int, by: By, leaving: Collection[int] = ()
) -> list[Neighbor]:
    if count < 1:
        raise InputError(f"{count} neighbors; wanted 1 or more")
    if by not in ("cosine", "euclidean"):
        raise InputError(f"neighbors by {by!r}; wanted cosine or euclidean")
    if vector.shape != (vectors.width,):
        raise InputError(f"a vector of shape {vector.shape} among vectors of {vectors.width} numbers; wanted as many")
    far = -_cosines(vectors.matrix, vector) if by == "cosine" else _distances(vectors.matrix, vector)
    order = np.argsort(far, kind="stable")[: count + len(leaving)]
    chosen = [int(place) for place in order if int(place) not in leaving][:count]
    near = _nearness(vector, vectors.matrix[chosen])
    return [Neighbor(vectors.words[place], *both) for place, both in zip(chosen, near, strict=True)]


def _nearness(vector: np.ndarray, rows: np.ndarray) -> list[tuple[float, float]]:
    """Cosine and distance of each row."""
    cosines, distances = _cosines(rows, vector), _distances(rows, vector)
    return [(float(cosine), float(distance)) for cosine, distance in zip(cosines, distances, strict=True)]


def _cosines(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    lengths = _lengths(matrix)
    return np.clip(matrix @ units(vector[None])[0] / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0)


def _distances(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    blocks = (matrix[start : start + BLOCK] for start in range(0, len(matrix), BLOCK))
    return np.concatenate([_lengths(block - vector) for block in blocks] or [np.zeros(0)])


def units(matrix: np.ndarray) -> np.ndarray:
    """The rows at length 1; zeros stay zeros."""
    lengths = _lengths(matrix)[:, None]
    return (matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _lengths(matrix: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))  # without a copy of a large matrix
