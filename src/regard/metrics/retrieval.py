"""Metrics of retrieval: recall@k, how often the true item is among the first k."""

from collections.abc import Sequence

import numpy as np


def true_ranks(scores: np.ndarray) -> np.ndarray:
    """For scores (N, N) where row i belongs to column i: the rank of the true item in each row, 1 the first.

    Ties rank before the true item, so a model that gives equal scores gains nothing.
    """
    scores = np.asarray(scores, np.float64)
    assert scores.ndim == 2, scores.shape
    assert scores.shape[0] == scores.shape[1], scores.shape
    own = np.diagonal(scores)[:, None]
    return np.asarray((scores >= own).sum(1) + np.isnan(scores).any(1) * scores.shape[1])


def recall_at(scores: np.ndarray, ks: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """Recall@1, @5 and @10: the fraction of rows whose true item is among the first k."""
    ranks = true_ranks(scores)
    return {f"r@{k}": float((ranks <= k).mean()) for k in ks}
