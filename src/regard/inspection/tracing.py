"""Record a trace: run a model once on an input that its task has prepared, with the taps captured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import InputError
from regard.inspection.capture import capture, points
from regard.inspection.trace import (
    IMAGE,
    Axis,
    Reference,
    Trace,
    TraceInfo,
    attentions_of,
    joined,
    modules_of,
    versions,
)
from regard.layers.embeddings import Embedding

MAX_BYTES = 2 * 2**30  # of all values of a trace
SOURCE_TARGET = ("source", "target")  # of an embedding that both share


@dataclass(frozen=True)
class TraceInputs:
    """What a task prepares: the axes of its input and output, and one forward pass over them.

    A model that generates has generated already; the pass is teacher-forced, so that one pass has all positions.
    """

    axes: Mapping[str, Axis]
    forward: Callable[[], Any]
    answer: Any = None
    strategy: str = ""
    image: np.ndarray | None = None
    references: tuple[Reference, ...] = ()


@torch.inference_mode()
def record(
    pipeline: Any,
    task: str,
    inputs: TraceInputs,
    patterns: Sequence[str] = ("*",),
    *,
    interventions: Sequence[str] = (),
) -> Trace:
    """The trace of one pass: the values of all points whose path matches; `interventions` are those in force."""
    model: nn.Module = pipeline.model
    seen = 0
    values: dict[str, np.ndarray] = {}
    with capture(model, *patterns) as captured:
        inputs.forward()
    together: dict[str, tuple[str, ...]] = {}
    for path in list(captured):
        calls = captured.pop(path)
        values[path] = joined(path, calls)
        if len(calls) == len(SOURCE_TARGET) and _lengths(calls) == _axis_lengths(inputs):
            together[path] = SOURCE_TARGET
        seen += values[path].nbytes
        if seen > MAX_BYTES:
            raise InputError(
                f"the values of this pass take more than {MAX_BYTES / 2**30:.0f} GiB; choose some of them with "
                "--taps '*.weights', say, or give a shorter text"
            )
    if inputs.image is not None:
        values[IMAGE] = np.ascontiguousarray(inputs.image)
    info = TraceInfo(
        kind=pipeline.kind,
        task=task,
        interface=model.interface,
        config=model.config.model_dump(mode="json"),  # type: ignore[union-attr, operator]
        axes=dict(inputs.axes),
        attentions=tuple(attentions_of(model)),
        modules=modules_of(model),
        answer=inputs.answer,
        strategy=inputs.strategy,
        interventions=tuple(interventions),
        joined=together,
        references=inputs.references,
        versions=versions(),
    )
    return Trace(info, values)


def joined_axes(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """The points that run on the source and then on the target: an embedding that both share."""
    found = [path for path, module in points(model).items() if isinstance(module, Embedding)]
    return {found[0]: SOURCE_TARGET} if model.interface == "seq2seq" and len(found) == 1 else {}


def _lengths(calls: Sequence[Tensor]) -> list[int]:
    """The positions of each call of a point whose values are hidden states (1, T, D)."""
    return [call.shape[1] for call in calls if call.dim() == 3]


def _axis_lengths(inputs: TraceInputs) -> list[int]:
    return [len(inputs.axes[name].tokens) for name in SOURCE_TARGET if name in inputs.axes]
