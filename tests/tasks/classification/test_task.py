"""Classification: the loss by hand, weights of classes, and scores that are scikit-learn's."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics as sklearn
from torch import nn

from regard.data.rows import RowBatch
from regard.tasks.classification.task import ClassificationTraining, balancing_weights, score_logits


class Fixed(nn.Module):
    """Says the same of every row."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, ids, segment_ids):
        return self.logits[ids[:, 0]]


def batch(targets, numbers=None):
    targets = torch.tensor(targets)
    ids = torch.tensor(numbers or range(len(targets)))[:, None]
    return RowBatch(ids, torch.zeros_like(ids), targets, len(targets), ids[:, 0])


LOGITS = [[math.log(3.0), 0.0], [0.0, math.log(7.0)]]  # 3/4 and 1/4; 1/8 and 7/8


def test_weights_balance_the_classes():
    assert balancing_weights([1, 3]).tolist() == pytest.approx([2.0, 2 / 3])
    assert balancing_weights([5, 5, 5]).tolist() == pytest.approx([1.0, 1.0, 1.0])
    counts = [7, 1, 30]
    weights = balancing_weights(counts).tolist()
    sums = [count * weight for count, weight in zip(counts, weights, strict=True)]
    assert sums == pytest.approx([sum(counts) / 3] * 3)


def test_a_class_without_rows_takes_nothing_from_the_others():
    assert balancing_weights([0, 1, 3]).tolist()[1:] == pytest.approx([2.0, 2 / 3])


def test_the_loss_is_summed_and_weighted():
    """Held out too: by that loss the best weights are chosen."""
    model = Fixed(LOGITS)
    task = ClassificationTraining(None, ("a", "b"), ("accuracy",), weights=torch.tensor([2.0, 0.5]))
    plain = -math.log(3 / 4) - math.log(7 / 8)
    weighted = -2 * math.log(3 / 4) - 0.5 * math.log(7 / 8)
    assert task.loss(model.eval(), batch([0, 1])).item() == pytest.approx(weighted)
    assert task.loss(model.train(), batch([0, 1])).item() == pytest.approx(weighted)
    assert ClassificationTraining(None, ("a", "b"), ("accuracy",)).loss(model, batch([0, 1])).item() == pytest.approx(
        plain
    )


def test_the_loss_of_a_score_is_the_squared_error():
    task = ClassificationTraining(None, (), ("pearson",))
    assert task.loss(Fixed([[1.0], [4.0]]), batch([3.0, 3.5])).item() == pytest.approx(4 + 0.25)


def test_the_scores_are_those_of_scikit_learn():
    chance = np.random.default_rng(3)
    logits, wanted = torch.from_numpy(chance.normal(size=(200, 3))), torch.from_numpy(chance.integers(0, 3, 200))
    found = score_logits(logits, wanted, ("x", "y", "z"), ("accuracy", "macro_f1", "matthews"))
    chosen = logits.argmax(-1).numpy()
    assert found["accuracy"] == pytest.approx(sklearn.accuracy_score(wanted, chosen))
    assert found["macro_f1"] == pytest.approx(sklearn.f1_score(wanted, chosen, average="macro"))
    assert found["matthews"] == pytest.approx(sklearn.matthews_corrcoef(wanted, chosen))
    numbers = score_logits(logits[:, :1], logits[:, 1] + logits[:, 0], (), ("pearson", "spearman"))
    sides = logits[:, 0].numpy(), (logits[:, 1] + logits[:, 0]).numpy()
    assert numbers["pearson"] == pytest.approx(stats.pearsonr(*sides).statistic)
    assert numbers["spearman"] == pytest.approx(stats.spearmanr(*sides).statistic)


def test_batches_are_measured_together():
    task = ClassificationTraining(None, ("a", "b"), ("accuracy", "f1"))
    batches = [batch([0, 1]), batch([1, 1, 0], [0, 1, 1])]
    found = task.metrics(Fixed(LOGITS), 0.0, batches, None)
    assert found == pytest.approx({"accuracy": 3 / 5, "f1": 2 * 2 / (2 * 2 + 1 + 1)})
