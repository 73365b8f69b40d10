"""Tagging: a sentence in, a label for each word as the lesson, asked of each word's first piece (Devlin 2019, 5.3).

Works with any model that answers `model(ids, segment_ids)` with logits (B, T, C).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Config
from regard.data.batches import IGNORE_INDEX
from regard.data.rows import RowBatch, RowSplits
from regard.metrics.tagging import tagging_metrics
from regard.tasks.row_batches import RowLearning


class TaggingConfig(Config):
    """What is asked of a tagger while it learns: the label of every word, nothing else."""


class Tagging(RowLearning):
    """The task, with its data."""

    name = "tagging"
    unit = "words"

    def __init__(self, data: RowSplits, labels: Sequence[str], sentences: Sequence[int] | None = None) -> None:
        """`sentences` are the numbers of the sentences that the held-out rows are of; none: each is one of its own."""
        super().__init__(data)
        self.labels, self.sentences = labels, sentences

    def loss(self, model: Any, batch: RowBatch) -> Tensor:
        """Summed cross-entropy of the words."""
        logits = model(batch.ids, batch.segment_ids)
        return F.cross_entropy(
            logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORE_INDEX, reduction="sum"
        )

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[RowBatch], generate: Any) -> dict[str, float]:
        """The scores of whole sentences: rows of one are joined, in their order, before entities are counted."""
        found: dict[int, list[str]] = {}
        wanted: dict[int, list[str]] = {}
        for number, chosen, targets in sorted(_answers(model, batches), key=lambda row: row[0]):
            sentence = number if self.sentences is None else self.sentences[number]
            asked = targets != IGNORE_INDEX
            found.setdefault(sentence, []).extend(self.labels[one] for one in chosen[asked].tolist())
            wanted.setdefault(sentence, []).extend(self.labels[one] for one in targets[asked].tolist())
        return tagging_metrics(list(found.values()), list(wanted.values())).metrics()


def _answers(model: Any, batches: Iterable[RowBatch]) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Of each row its number, what is chosen and what is wanted."""
    for batch in batches:
        chosen = model(batch.ids, batch.segment_ids).argmax(-1)
        yield from zip(batch.indices.tolist(), chosen, batch.targets, strict=True)
