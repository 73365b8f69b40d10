"""Questions about pictures: an answer, a yes or no, or the region that is meant (Lu 2019, 4.1).

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
from regard.tasks.row_batches import RowLearning
from regard.tasks.vision_language.dataset import ImageRowBatch


class PictureQuestionsConfig(Config):
    """Nothing: a question is asked as it is."""


class PictureQuestions(RowLearning):
    """The task, with its data. Each question has one right class, and is of some kind by which it is counted."""

    name = "picture-questions"
    unit = "questions"

    def __init__(self, data: RowSplits, kinds: Sequence[str]) -> None:
        super().__init__(data)
        self.kinds = kinds  # of the held-out questions, by their numbers

    def loss(self, model: Any, batch: ImageRowBatch) -> Tensor:
        """Summed cross-entropy over the questions."""
        return F.cross_entropy(logits(model, batch), batch.targets, reduction="sum")

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[ImageRowBatch], generate: Any) -> dict[str, float]:
        """The share of right answers, of all and of each kind."""
        right: dict[str, list[bool]] = defaultdict(list)
        for batch in batches:
            found = (logits(model, batch).argmax(-1) == batch.targets).tolist()
            for number, one in zip(batch.indices.tolist(), found, strict=True):
                right[self.kinds[number]].append(one)
        return accuracies(right)


class Pointing(PictureQuestions):
    """The same, where the classes are the regions of each picture."""

    name = "pointing"
    unit = "phrases"


def logits(model: Any, batch: ImageRowBatch) -> Tensor:
    found: Tensor = model(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
    return found


def accuracies(right: dict[str, list[bool]]) -> dict[str, float]:
    """The share of right answers: `accuracy`, and where there are several kinds `accuracy_…` of each."""
    every = [one for some in right.values() for one in some]
    found = {"accuracy": sum(every) / len(every)} if every else {}
    if len(right) > 1:
        found |= {f"accuracy_{kind}": sum(some) / len(some) for kind, some in sorted(right.items())}
    return found
