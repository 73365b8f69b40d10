"""An encoder prepared for a trace, whatever head it has: its row of tokens, of one text or a pair."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.errors import InputError
from regard.inspection.trace import Axis, byte_spans
from regard.inspection.tracing import TraceInputs
from regard.tasks.base import TraceRequest
from regard.tasks.encoders.pipeline import EncoderPipeline
from regard.tokenizers.wordpiece import Encoding


def trace_inputs(pipeline: EncoderPipeline, request: TraceRequest) -> TraceInputs:
    """The row of one text, or of a pair, in which special tokens such as [MASK] are parsed."""
    if not 1 <= len(request.inputs) <= 2:
        raise InputError(f"got {len(request.inputs)} texts; a trace of an encoder is of one text, or of a pair")
    first, second = request.inputs[0], request.inputs[1] if len(request.inputs) == 2 else None
    row = pipeline.tokenizer.encode(first, second, max_length=pipeline.max_length, parse_special_tokens=True)
    if row.num_truncated:
        raise InputError(
            f"got {len(row.ids) + row.num_truncated} tokens, this model reads {pipeline.max_length}; shorten the text"
        )
    row = _padded(pipeline, row, request.batch)
    device = next(pipeline.model.parameters()).device
    ids, segment_ids = (torch.tensor([values], device=device) for values in (row.ids, row.segment_ids))
    labels = pipeline.tokenizer.token_labels(row.ids)
    text = first if second is None else f"{first}\n{second}"
    axis = Axis(tokens=tuple(labels), text=text, spans=byte_spans(text, labels), segment_ids=tuple(row.segment_ids))
    return TraceInputs({"text": axis}, lambda: pipeline.model(ids, segment_ids))


def _padded(pipeline: EncoderPipeline, row: Encoding, batch: Sequence[str]) -> Encoding:
    """The row as it stands in a batch with these texts."""
    tokenizer = pipeline.tokenizer
    lengths = [
        len(tokenizer.encode(text, max_length=pipeline.max_length, parse_special_tokens=True).ids) for text in batch
    ]
    missing = max(lengths, default=0) - len(row.ids)
    if missing <= 0:
        return row
    pad_id = pipeline.model.config.special_ids.pad_id
    return replace(row, ids=[*row.ids, *[pad_id] * missing], segment_ids=[*row.segment_ids, *[0] * missing])
