"""Classification: a text or a pair in, its class or its score as the lesson (Devlin 2019, 3.2).

Works with any model that answers `model(ids, segment_ids)` with logits (B, C); of a score, (B, 1).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.config import Config
from regard.data.rows import RowBatch, RowSplits
from regard.metrics.classification import label_metrics, regression_metrics
from regard.tasks.row_batches import RowLearning


class ClassificationConfig(Config):
    """What is asked of a classifier while it learns."""

    class_weights: bool = Field(False, description="a rare class counts as much as a common one")


class Classification(RowLearning):
    """The task, with its data. Without labels it is a score that is learned."""

    name = "classification"
    unit = "rows"

    def __init__(
        self, data: RowSplits, labels: Sequence[str], metrics: Sequence[str], weights: Tensor | None = None
    ) -> None:
        super().__init__(data)
        self.labels, self.metric_names, self.weights = labels, metrics, weights

    def loss(self, model: Any, batch: RowBatch) -> Tensor:
        """Summed over the rows: cross-entropy, weighted by class where it is to be; of a score the squared error."""
        logits = model(batch.ids, batch.segment_ids)
        if not self.labels:
            return F.mse_loss(logits[:, 0], batch.targets, reduction="sum")
        return F.cross_entropy(logits, batch.targets, self.weights, reduction="sum")

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[RowBatch], generate: Any) -> dict[str, float]:
        found, wanted = [], []
        for batch in batches:
            found.append(model(batch.ids, batch.segment_ids))
            wanted.append(batch.targets)
        return score_logits(torch.cat(found), torch.cat(wanted), self.labels, self.metric_names)


def score_logits(logits: Tensor, wanted: Tensor, labels: Sequence[str], metrics: Sequence[str]) -> dict[str, float]:
    """The scores of what the model thinks."""
    if not labels:
        return regression_metrics(logits[:, 0].tolist(), wanted.tolist(), metrics)
    return label_metrics([labels[i] for i in logits.argmax(-1)], [labels[i] for i in wanted], labels, metrics)


def balancing_weights(counts: Sequence[int]) -> Tensor:
    """A weight a class, so that each that occurs has the same sum, and the mean over all rows is 1."""
    each = torch.tensor(counts, dtype=torch.float)
    return each.sum() / ((each > 0).sum() * each.clamp(min=1))
