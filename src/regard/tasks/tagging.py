"""Tagging: a sentence in, a label for each word as the lesson, asked of each word's first piece (Devlin 2019, 5.3).

Works with any model that answers `model(ids, segments)` with logits (B, T, C).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Facts
from regard.data.batches import IGNORED
from regard.data.rows import RowBatch, RowData
from regard.metrics.tagging import tag_scores
from regard.tasks.row_learning import RowLearning


class TaggingConfig(Facts):
    """What is asked of a tagger while it learns: the label of every word, nothing else."""


class Tagging(RowLearning):
    """The task, with its data."""

    name = "tagging"
    unit = "words"

    def __init__(self, data: RowData, labels: Sequence[str]) -> None:
        super().__init__(data)
        self.labels = labels

    def loss(self, model: Any, batch: RowBatch) -> Tensor:
        """Summed cross-entropy of the words."""
        logits = model(batch.ids, batch.segments)
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")

    @torch.no_grad()
    def measures(self, model: Any, loss: float, batches: Iterable[RowBatch], generate: Any) -> dict[str, float]:
        found: list[list[str]] = []
        wanted: list[list[str]] = []
        for batch in batches:
            chosen = model(batch.ids, batch.segments).argmax(-1)
            for row, targets in zip(chosen, batch.targets, strict=True):
                asked = targets != IGNORED
                found.append([self.labels[number] for number in row[asked].tolist()])
                wanted.append([self.labels[number] for number in targets[asked].tolist()])
        return tag_scores(found, wanted).numbers()
