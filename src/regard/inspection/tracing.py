"""Record a trace: run a model once on an input that its task has prepared, with the taps captured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.errors import InputError
from regard.inspection.capture import capture
from regard.inspection.trace import IMAGE, Axis, Trace, TraceInfo, attentions_of, joined, modules_of, versions

MAX_BYTES = 2 * 2**30  # of all values of a trace


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
    for path in list(captured):
        values[path] = joined(path, captured.pop(path))
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
        versions=versions(),
    )
    return Trace(info, values)
