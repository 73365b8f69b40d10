"""Training on questions about images: the class of the answer, or of the region that is meant (Lu 2019, 4.1).

Works with any model whose `model(ids, segment_ids, regions, boxes)` returns logits (B, C) of answers or of regions.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Config
from regard.data.rows import RowSplits
from regard.tasks.row_batches import RowTraining
from regard.tasks.vision_language.dataset import ImageRowBatch


class QuestionTrainingConfig(Config):
    """The training objective of question answering and grounding; there is nothing to set."""


class QuestionTraining(RowTraining):
    """Visual question answering as the training loop needs it. Each question has one answer, and a kind to count by."""

    name = "visual-question-answering"
    unit = "questions"

    def __init__(self, data: RowSplits, kinds: Sequence[str]) -> None:
        super().__init__(data)
        self.kinds = kinds  # of the validation questions, by number

    def loss(self, model: Any, batch: ImageRowBatch) -> Tensor:
        """Summed cross-entropy over the questions."""
        return F.cross_entropy(logits(model, batch).float(), batch.targets, reduction="sum")

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[ImageRowBatch], generate: Any) -> dict[str, float]:
        """Accuracy, overall and by kind."""
        right: dict[str, list[bool]] = defaultdict(list)
        for batch in batches:
            found = (logits(model, batch).argmax(-1) == batch.targets).tolist()
            for number, one in zip(batch.indices.tolist(), found, strict=True):
                right[self.kinds[number]].append(one)
        return accuracies(right)


class GroundingTraining(QuestionTraining):
    """The same for grounding, where the classes are the regions of each image."""

    name = "grounding"
    unit = "phrases"


def logits(model: Any, batch: ImageRowBatch) -> Tensor:
    found: Tensor = model(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
    return found


def accuracies(right: dict[str, list[bool]]) -> dict[str, float]:
    """`accuracy` of all, and where there are several kinds `accuracy_…` of each."""
    every = [one for some in right.values() for one in some]
    found = {"accuracy": sum(every) / len(every)} if every else {}
    if len(right) > 1:
        found |= {f"accuracy_{kind}": sum(some) / len(some) for kind, some in sorted(right.items())}
    return found
