"""Several evaluations: mean and standard deviation."""

import math

import pytest

from regard.tasks.evaluation import mean_of


def test_means_are_of_what_all_runs_have():
    found = mean_of([{"f1": 0.5, "f1_X": 0.1}, {"f1": 0.7}])
    assert found["f1"] == pytest.approx(0.6)
    assert found["deviation"] == pytest.approx({"f1": math.sqrt(0.02)})


def test_means_stand_in_the_order_of_the_scores():
    one = {"pairs": 3, "loss": 1.0, "bleu": 2.0, "signature": "s"}
    assert list(mean_of([one, one | {"bleu": 3.0}])) == ["runs", "pairs", "loss", "bleu", "signature", "deviation"]
