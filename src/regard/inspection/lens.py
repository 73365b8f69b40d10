"""The logit lens (nostalgebraist 2020): what a model would predict if it ended after each of its layers.

The hidden states after a block are put in the place of those after the last block, and the model runs on from there:
its own final norm and output layer give the logits, whatever they are.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.inspection.capture import watch_point
from regard.inspection.predictions import OUTPUT_AXES, predicts_no_tokens, token_logits
from regard.inspection.trace import Trace, TraceInfo
from regard.inspection.tracing import TraceInputs


def lens_taps(info: TraceInfo) -> list[str]:
    """The taps of the hidden states after each block that leads to the logits, in their order.

    These are the blocks with self-attention over the axis of the predicted tokens.
    """
    axis = OUTPUT_AXES[info.interface]
    found = [one.path for one in info.attentions if one.queries == one.keys == axis]
    return [f"{path.rpartition('.')[0]}.hidden" for path in found]


def has_no_lens(info: TraceInfo) -> str | None:
    """Why the logit lens has no meaning for a model; None: it has."""
    if not lens_taps(info):
        return "it has no blocks with self-attention before its output layer"
    return predicts_no_tokens(info)


@torch.inference_mode()
def lens_logits(model: Any, inputs: TraceInputs, trace: Trace, vocab_size: int) -> Tensor:
    """Logits (layers, T, V) after each block; those of the last are the model's own."""
    taps = lens_taps(trace.info)
    return torch.stack([_logits_after(model, inputs, taps[-1], trace.value(tap), vocab_size) for tap in taps])


def _logits_after(model: Any, inputs: TraceInputs, last: str, hidden: np.ndarray, vocab_size: int) -> Tensor:
    def replace(value: Tensor) -> Tensor:
        return torch.from_numpy(hidden)[None].to(value)

    unwatch = watch_point(model, last, replace)
    try:
        return token_logits(inputs, vocab_size)
    finally:
        unwatch()
