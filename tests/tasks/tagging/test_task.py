"""Tagging: asked of first pieces alone, and scored by whole entities."""

import math

import pytest
import torch
from torch import nn

from regard.data.batches import IGNORE_INDEX
from regard.data.rows import RowBatch
from regard.tasks.tagging.task import TaggingTraining

LABELS = ("O", "B-X", "I-X")


class Fixed(nn.Module):
    """Is sure of the label whose number is the piece's."""

    def forward(self, ids, segment_ids):
        return torch.nn.functional.one_hot(ids, 3) * math.log(6.0)  # 6/8 for one, 1/8 for each other


def batch(ids, targets, first=0):
    ids, targets = torch.tensor(ids), torch.tensor(targets)
    rows = torch.arange(first, first + len(ids))
    return RowBatch(ids, torch.zeros_like(ids), targets, int((targets != IGNORE_INDEX).sum()), rows)


def test_only_what_is_wanted_counts():
    loss = TaggingTraining(None, LABELS).loss(
        Fixed(), batch([[0, 1, 2], [2, 2, 0]], [[IGNORE_INDEX, 1, 0], [2, IGNORE_INDEX, IGNORE_INDEX]])
    )
    assert loss.item() == pytest.approx(-2 * math.log(6 / 8) - math.log(1 / 8))


def test_whole_entities_are_scored_over_all_batches():
    first = batch(
        [[0, 1, 2, 2]], [[IGNORE_INDEX, 1, 2, IGNORE_INDEX]]
    )  # found as wanted: what nothing is wanted of is left out
    second = batch(
        [[1, 0], [1, 2]], [[1, 1], [1, 0]], first=1
    )  # two wanted and one found; one wanted, a longer one found
    found = TaggingTraining(None, LABELS).metrics(Fixed(), 0.0, [first, second], None)
    # Wanted: one, then two, then one. Found: one, then one, then one that is too long. Right: two.
    assert found == pytest.approx({"f1": 4 / 7, "precision": 2 / 3, "recall": 2 / 4, "accuracy": 4 / 6})


def test_rows_of_one_sentence_are_scored_as_one():
    """One entity goes over from the second row to the third; batches come in any order."""
    last, others = batch([[2, 0]], [[2, 0]], first=2), batch([[0, 1], [0, 1]], [[0, 1], [0, 1]])
    apart = TaggingTraining(None, LABELS).metrics(Fixed(), 0.0, [last, others], None)
    joined = TaggingTraining(None, LABELS, sentences=[0, 1, 1]).metrics(Fixed(), 0.0, [last, others], None)
    assert apart == joined == {"f1": 1.0, "precision": 1.0, "recall": 1.0, "accuracy": 1.0}
    wrong = batch([[0, 0]], [[2, 0]], first=2)  # its end is not found: the one entity of the two rows is wrong
    assert TaggingTraining(None, LABELS).metrics(Fixed(), 0.0, [wrong, others], None)["recall"] == pytest.approx(2 / 3)
    halved = TaggingTraining(None, LABELS, sentences=[0, 1, 1]).metrics(Fixed(), 0.0, [wrong, others], None)
    assert halved["recall"] == halved["precision"] == pytest.approx(1 / 2)
