"""How often the right one of many is among the first."""

from collections.abc import Sequence

import numpy as np


def ranks(scores: np.ndarray) -> np.ndarray:
    """Of scores (N, N) whose row i belongs to column i: the place of the right one in each row, 1 the first.

    One that scores as much as the right one stands before it: a model that says the same of all is not rewarded.
    """
    scores = np.asarray(scores, np.float64)
    assert scores.ndim == 2, scores.shape
    assert scores.shape[0] == scores.shape[1], scores.shape
    own = np.diagonal(scores)[:, None]
    return np.asarray((scores >= own).sum(1) + np.isnan(scores).any(1) * scores.shape[1])


def recalls(scores: np.ndarray, among: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """R@1, R@5 and R@10 of each row: the share of them whose right one is among the first so many."""
    places = ranks(scores)
    return {f"r@{first}": float((places <= first).mean()) for first in among}
