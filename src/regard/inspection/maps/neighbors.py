"""Word embeddings: nearest neighbors, analogies, and how well two embedding matrices agree.

Similarity is the cosine, from -1 to 1 (0 for a zero vector), or the Euclidean distance.
"""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from regard.data.readers.word_vectors import WordVectors
from regard.errors import InputError

BLOCK_ROWS = 1 << 14  # rows whose differences are in memory at once
By = Literal["cosine", "euclidean"]


@dataclass(frozen=True)
class Neighbor:
    """A word with its cosine similarity and Euclidean distance."""

    word: str
    cosine: float
    distance: float


@dataclass(frozen=True)
class Agreement:
    """How well two sets of word vectors agree on the words they share."""

    words: int
    correlation: float  # of the cosines of all pairs of these words, from -1 to 1


def nearest(vectors: WordVectors, word: str | np.ndarray, *, count: int = 10, by: By = "cosine") -> list[Neighbor]:
    """The nearest words of a word (without itself) or of a vector, nearest first."""
    if isinstance(word, str):
        row = _row_of(vectors, word)
        return _nearest(vectors, vectors.matrix[row], count, by, excluded={row})
    return _nearest(vectors, np.asarray(word, np.float32), count, by)


def analogy(vectors: WordVectors, a: str, b: str, c: str, count: int = 10) -> list[Neighbor]:
    """a is to b as c is to which word? The nearest words of b - a + c, without these three (Mikolov 2013).

    All vectors are normalized to length 1; the distances are between such vectors.
    """
    rows = [_row_of(vectors, word) for word in (a, b, c)]
    even = WordVectors(vectors.words, units(vectors.matrix))
    first, second, third = even.matrix[rows]
    return _nearest(even, second - first + third, count, "cosine", excluded=set(rows))


def compare(vectors: WordVectors, one: str, other: str) -> Neighbor:
    """The similarity of two words."""
    first, second = (vectors.matrix[_row_of(vectors, word)] for word in (one, other))
    return Neighbor(other, *_similarities(first, second[None])[0])


def agreement(one: WordVectors, other: WordVectors, most: int = 2000) -> Agreement:
    """How well two sets of vectors, of any widths, agree on the first `most` words that both have."""
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


def word_embeddings(weight: Tensor, words: Sequence[str | None]) -> WordVectors:
    """The rows of an embedding matrix (V, D) whose token is a whole word; `words[id]` is that word or None."""
    assert len(words) <= len(weight)
    rows: dict[str, int] = {}
    for number, word in enumerate(words):
        if word is not None:
            rows.setdefault(word, number)
    if not rows:
        raise InputError(f"none of the {len(words):,} tokens of this model is a whole word")
    matrix = weight.detach()[list(rows.values())].float().cpu().numpy()
    return WordVectors(list(rows), np.ascontiguousarray(matrix))


def similar_spellings(word: str, words: Sequence[str]) -> list[str]:
    """Up to three words of similar spelling: those that differ in case first, then in few letters."""
    cased = [each for each in words if each.casefold() == word.casefold()]
    # Of a million words only plausible candidates; files list frequent words first.
    likely = [each for each in words if abs(len(each) - len(word)) <= 2 and set(each[:2]) & set(word[:2])][:20_000]
    close = difflib.get_close_matches(word, likely, n=3, cutoff=0.6)
    return list(dict.fromkeys([*cased, *close]))[:3]


def _row_of(vectors: WordVectors, word: str) -> int:
    if word in vectors.rows:
        return vectors.rows[word]
    near = similar_spellings(word, vectors.words)
    hint = f"did you mean {' or '.join(near)}?" if near else "none has a similar spelling"
    raise InputError(f"{word!r} is not among the {len(vectors.words):,} words; {hint}")


def _nearest(
    vectors: WordVectors, vector: np.ndarray, count: int, by: By, excluded: Collection[int] = ()
) -> list[Neighbor]:
    if count < 1:
        raise InputError(f"{count} neighbors; wanted 1 or more")
    if by not in ("cosine", "euclidean"):
        raise InputError(f"neighbors by {by!r}; wanted cosine or euclidean")
    if vector.shape != (vectors.width,):
        raise InputError(f"a vector of shape {vector.shape}; wanted ({vectors.width},), the width of the others")
    far = -_cosines(vectors.matrix, vector) if by == "cosine" else _distances(vectors.matrix, vector)
    order = np.argsort(far, kind="stable")[: count + len(excluded)]
    chosen = [int(row) for row in order if int(row) not in excluded][:count]
    near = _similarities(vector, vectors.matrix[chosen])
    return [Neighbor(vectors.words[row], *both) for row, both in zip(chosen, near, strict=True)]


def _similarities(vector: np.ndarray, rows: np.ndarray) -> list[tuple[float, float]]:
    """Cosine and Euclidean distance of each row."""
    cosines, distances = _cosines(rows, vector), _distances(rows, vector)
    return [(float(cosine), float(distance)) for cosine, distance in zip(cosines, distances, strict=True)]


def _cosines(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    lengths = _lengths(matrix)
    return np.clip(matrix @ units(vector[None])[0] / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0)


def _distances(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    blocks = (matrix[start : start + BLOCK_ROWS] for start in range(0, len(matrix), BLOCK_ROWS))
    return np.concatenate([_lengths(block - vector) for block in blocks] or [np.zeros(0)])


def units(matrix: np.ndarray) -> np.ndarray:
    """The rows normalized to length 1; zero rows stay zero."""
    lengths = _lengths(matrix)[:, None]
    return (matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _lengths(matrix: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))  # einsum: no copy of a large matrix
