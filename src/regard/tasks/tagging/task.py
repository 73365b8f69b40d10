"""Training a tagger: sentences with a label per word, predicted at each word's first token (Devlin 2019, 5.3).

Works with any model whose `model(ids, segment_ids)` returns logits (B, T, C).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Config
from regard.data.batches import IGNORE_INDEX
from regard.data.rows import RowBatch, RowSplits
from regard.metrics.tagging import are_entity_labels, tagging_metrics
from regard.tasks.row_batches import RowTraining


class TaggingConfig(Config):
    """The training objective of a tagger: the label of every word; there is nothing to set."""


class TaggingTraining(RowTraining):
    """Tagging as the training loop needs it."""

    name = "tagging"
    unit = "words"

    def __init__(self, data: RowSplits, labels: Sequence[str], sentences: Sequence[int] | None = None) -> None:
        """`sentences`: the number of the sentence of each validation row; None: each row is a sentence."""
        super().__init__(data)
        self.labels, self.sentences = labels, sentences
        self.main_metric = "f1" if are_entity_labels(labels) else "accuracy"

    def loss(self, model: Any, batch: RowBatch) -> Tensor:
        """Summed cross-entropy of the words."""
        logits = model(batch.ids, batch.segment_ids)
        return F.cross_entropy(
            logits.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORE_INDEX, reduction="sum"
        )

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[RowBatch], generate: Any) -> dict[str, float]:
        """The metrics of whole sentences: the rows of a sentence are joined in order before entities are counted."""
        predictions: dict[int, list[str]] = {}
        references: dict[int, list[str]] = {}
        for number, predicted, targets in sorted(_predictions(model, batches), key=lambda row: row[0]):
            sentence = number if self.sentences is None else self.sentences[number]
            labeled = targets != IGNORE_INDEX
            predictions.setdefault(sentence, []).extend(self.labels[one] for one in predicted[labeled].tolist())
            references.setdefault(sentence, []).extend(self.labels[one] for one in targets[labeled].tolist())
        return tagging_metrics(list(predictions.values()), list(references.values())).metrics()


def _predictions(model: Any, batches: Iterable[RowBatch]) -> Iterator[tuple[int, Tensor, Tensor]]:
    """For each row its number, its predicted labels and its targets."""
    for batch in batches:
        predicted = model(batch.ids, batch.segment_ids).argmax(-1).cpu()
        yield from zip(batch.indices.tolist(), predicted, batch.targets.cpu(), strict=True)
