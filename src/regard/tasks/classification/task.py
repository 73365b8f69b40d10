"""Training a classifier: texts or pairs with their classes, or with scores (Devlin 2019, 3.2).

Works with any model whose `model(ids, segment_ids)` returns logits (B, C); for a score, (B, 1).
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
from regard.tasks.row_batches import RowTraining


class ClassificationConfig(Config):
    """The training objective of a classifier."""

    class_weights: bool = Field(
        False, description="weight the classes, so that a rare class counts as much as a common one"
    )


class ClassificationTraining(RowTraining):
    """Classification as the training loop needs it; without labels, regression of a score."""

    name = "classification"
    unit = "rows"

    def __init__(
        self, data: RowSplits, labels: Sequence[str], metrics: Sequence[str], weights: Tensor | None = None
    ) -> None:
        super().__init__(data)
        self.labels, self.metric_names, self.weights = labels, metrics, weights
        self.main_metric = metrics[0]

    def loss(self, model: Any, batch: RowBatch) -> Tensor:
        """Summed over the rows: cross-entropy, with class weights where given; for a score the squared error."""
        logits = model(batch.ids, batch.segment_ids).float()
        if not self.labels:
            return F.mse_loss(logits[:, 0], batch.targets, reduction="sum")
        weights = None if self.weights is None else self.weights.to(logits.device, non_blocking=True)
        return F.cross_entropy(logits, batch.targets, weights, reduction="sum")

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[RowBatch], generate: Any) -> dict[str, float]:
        predicted, targets = [], []
        for batch in batches:
            predicted.append(model(batch.ids, batch.segment_ids))
            targets.append(batch.targets)
        return score_logits(torch.cat(predicted), torch.cat(targets), self.labels, self.metric_names)


def score_logits(logits: Tensor, targets: Tensor, labels: Sequence[str], metrics: Sequence[str]) -> dict[str, float]:
    """The metrics of the model's predictions."""
    if not labels:
        return regression_metrics(logits[:, 0].tolist(), targets.tolist(), metrics)
    predicted = [labels[i] for i in logits.argmax(-1).tolist()]
    return label_metrics(predicted, [labels[i] for i in targets.tolist()], labels, metrics)


def balancing_weights(counts: Sequence[int]) -> Tensor:
    """A weight per class: each class that occurs has the same total weight, and the mean over all rows is 1."""
    each = torch.tensor(counts, dtype=torch.float)
    return each.sum() / ((each > 0).sum() * each.clamp(min=1))
