"""Places of the right one, and how often it is among the first."""

import numpy as np
import pytest

from regard.metrics.retrieval import recall_at, true_ranks

SCORES = np.array([[0.9, 0.1, 0.2], [0.8, 0.7, 0.1], [0.5, 0.4, 0.3]])


def test_the_place_is_counted_from_one():
    assert true_ranks(SCORES).tolist() == [1, 2, 3]
    assert true_ranks(SCORES.T).tolist() == [1, 1, 1]


def test_a_model_that_says_the_same_of_all_is_last():
    assert true_ranks(np.zeros((4, 4))).tolist() == [4] * 4
    assert min(true_ranks(np.full((4, 4), np.nan))) > 3


def test_recall_is_the_share_of_those_among_the_first():
    assert recall_at(SCORES, (1, 2, 3)) == pytest.approx({"r@1": 1 / 3, "r@2": 2 / 3, "r@3": 1})
    rng = np.random.default_rng(0)
    found = recall_at(rng.random((500, 500)))
    assert found == pytest.approx({"r@1": 0.002, "r@5": 0.01, "r@10": 0.02}, abs=0.015)
