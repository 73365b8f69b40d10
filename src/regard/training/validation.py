"""Validation: the teacher-forced loss, and the metrics of a task, such as those of generated text."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.generation import Greedy, Strategy, generate
from regard.generation.decode import Limits
from regard.runtime import Runtime


class Task(Protocol):
    """What validation needs of a task."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor: ...

    def metrics(self, model: Any, loss: float, batches: Iterable[Any], generate: Any) -> dict[str, float]:
        """The metrics besides the validation loss; `generate` decodes, for tasks that generate."""


@torch.inference_mode()
def validation_loss(model: nn.Module, task: Task, batches: Iterable[Any], runtime: Runtime | None = None) -> float:
    """Mean cross-entropy per token, teacher-forced, without dropout and label smoothing."""
    runtime = runtime or Runtime()
    with evaluation_mode(model), runtime.autocast():
        total, tokens = 0.0, 0
        for batch in map(runtime.move, batches):
            total += task.loss(model, batch).item()
            tokens += batch.tokens
    return total / tokens if tokens else math.nan


def metrics(
    model: nn.Module,
    task: Task,
    loss: float,
    batches: Iterable[Any],
    strategy: Strategy | None = None,
    runtime: Runtime | None = None,
) -> dict[str, float]:
    """The task's own metrics; text is generated with `strategy`, greedily by default."""
    runtime = runtime or Runtime()
    with evaluation_mode(model), runtime.autocast():
        return task.metrics(model, loss, map(runtime.move, batches), generator(strategy or Greedy(scored=False)))


def generator(strategy: Strategy, shortest: int = 0) -> Any:
    """`generate` with the strategy filled in, as a task's `predict` takes it."""
    return partial(_generate, strategy, shortest)


def _generate(strategy: Strategy, shortest: int, model: Any, inputs: Any, longest: list[int]) -> Any:
    return generate(model, inputs, strategy, Limits(longest, shortest))


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """model.eval() inside the block; afterwards the mode it had before."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
