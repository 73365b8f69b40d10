"""What a model predicts at each position of a traced input: its logits, and the labels of its tokens."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from regard.inspection.trace import Axis, TraceInfo
from regard.inspection.tracing import TraceInputs

# The axis of the positions at which a model predicts tokens, by its interface.
OUTPUT_AXES = {
    "causal_lm": "text",
    "encoder": "text",
    "vision_language": "text",
    "seq2seq": "target",
    "captioner": "target",
}
MASKED_LM_TASKS = ("masked-lm", "image-text-pretraining")


def fills_masks(info: TraceInfo) -> bool:
    """Whether the model predicts the token of each [MASK], and not the next token."""
    return info.task in MASKED_LM_TASKS


def predicts_no_tokens(info: TraceInfo) -> str | None:
    """Why a model predicts no tokens; None: it does."""
    if fills_masks(info) or info.interface in ("causal_lm", "seq2seq", "captioner"):
        return None
    return "it does not predict tokens"


def output_axis(info: TraceInfo) -> Axis:
    return info.axes[OUTPUT_AXES[info.interface]]


def output_tokenizer(pipeline: Any) -> Any:
    """The tokenizer of what the model predicts; a translator has two."""
    return getattr(pipeline.tokenizer, "target", pipeline.tokenizer)


@torch.inference_mode()
def token_logits(inputs: TraceInputs, vocab_size: int) -> Tensor:
    """Logits (T, V) of one more pass, of the tokens that the tokenizer has; a model may have more rows."""
    output = inputs.forward()
    logits: Tensor = getattr(output, "tokens", output)
    return logits[0, :, :vocab_size].float()


def token_labels(pipeline: Any, ids: Iterable[int]) -> list[str]:
    """The label of each token by itself, not as the continuation of the one before."""
    tokenizer = output_tokenizer(pipeline)
    return [tokenizer.token_labels([number])[0] for number in ids]


def text_until(axis: Axis, position: int, longest: int = 40) -> str:
    """The end of the text up to and with a position."""
    span = axis.spans[position] if axis.spans else None
    if span is None:
        text = " ".join(axis.tokens[: position + 1])
    else:
        text = axis.text.encode()[: span[1]].decode(errors="replace").replace("\n", "\\n")
    return text if len(text) <= longest else "…" + text[-longest:]
