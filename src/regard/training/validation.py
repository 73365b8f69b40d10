"""What a model scores on held-out data: teacher-forced loss, and the scores of what it writes by itself."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.generation import Greedy, Strategy, generate
from regard.generation.decode import Limits


class Task(Protocol):
    """The side of a task that evaluation needs."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor: ...

    def metrics(self, model: Any, loss: float, batches: Iterable[Any], generate: Any) -> dict[str, float]:
        """What it says of a model beside the held-out loss; `generate` writes, where that is part of it."""


@torch.inference_mode()
def validation_loss(model: nn.Module, task: Task, batches: Iterable[Any]) -> float:
    """Mean cross-entropy a token, given the true tokens before it; without dropout and smoothing."""
    with evaluating(model):
        total, tokens = 0.0, 0
        for batch in batches:
            total += task.loss(model, batch).item()
            tokens += batch.tokens
    return total / tokens if tokens else math.nan


def metrics(
    model: nn.Module, task: Task, loss: float, batches: Iterable[Any], strategy: Strategy | None = None
) -> dict[str, float]:
    """The task's own scores, such as those of what the model writes on its own words."""
    with evaluating(model):
        return task.metrics(model, loss, batches, generator(strategy or Greedy(scored=False)))


def generator(strategy: Strategy, shortest: int = 0) -> Any:
    """`generate` with the strategy filled in, as a task's `predict` takes it."""
    return partial(_generate, strategy, shortest)


def _generate(strategy: Strategy, shortest: int, model: Any, inputs: Any, longest: list[int]) -> Any:
    return generate(model, inputs, strategy, Limits(longest, shortest))


class evaluating:  # noqa: N801 - reads as a phrase: `with evaluating(model):`
    """Evaluation mode inside the block, and the mode of before behind it."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __enter__(self) -> None:
        self.before = self.model.training
        self.model.eval()

    def __exit__(self, *error: object) -> None:
        self.model.train(self.before)
