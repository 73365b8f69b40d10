"""Tagging: asked of first pieces alone, and scored by whole entities."""

import math

import pytest
import torch
from torch import nn

from regard.data.rows import IGNORED, RowBatch
from regard.tasks.tagging import Tagging

LABELS = ("O", "B-X", "I-X")


class Fixed(nn.Module):
    """Is sure of the label whose number is the piece's."""

    def forward(self, ids, segments):
        return torch.nn.functional.one_hot(ids, 3) * math.log(6.0)  # 6/8 for one, 1/8 for each other


def batch(ids, targets):
    ids, targets = torch.tensor(ids), torch.tensor(targets)
    return RowBatch(ids, torch.zeros_like(ids), targets, int((targets != IGNORED).sum()), torch.arange(len(ids)))


def test_only_what_is_wanted_counts():
    loss = Tagging(None, LABELS).loss(Fixed(), batch([[0, 1, 2], [2, 2, 0]], [[IGNORED, 1, 0], [2, IGNORED, IGNORED]]))
    assert loss.item() == pytest.approx(-2 * math.log(6 / 8) - math.log(1 / 8))


def test_whole_entities_are_scored_over_all_batches():
    first = batch([[0, 1, 2, 2]], [[IGNORED, 1, 2, IGNORED]])  # found as wanted: what nothing is wanted of is left out
    second = batch([[1, 0], [1, 2]], [[1, 1], [1, 0]])  # two wanted and one found; one wanted, a longer one found
    found = Tagging(None, LABELS).measures(Fixed(), 0.0, [first, second], None)
    # Wanted: one, then two, then one. Found: one, then one, then one that is too long. Right: two.
    assert found == pytest.approx({"f1": 4 / 7, "precision": 2 / 3, "recall": 2 / 4, "accuracy": 4 / 6})
