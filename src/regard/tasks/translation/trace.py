"""A translator prepared for a trace: source and target as axes, and one teacher-forced pass over both."""

import torch

from regard.errors import InputError
from regard.generation import generate
from regard.inspection.trace import Axis, byte_spans
from regard.inspection.tracing import TraceInputs
from regard.tasks.base import TraceRequest
from regard.tasks.translation.pipeline import Translator


def trace_inputs(pipeline: Translator, request: TraceRequest) -> TraceInputs:
    """Translate the text, or take the target that is given, and look at both."""
    if len(request.inputs) != 1:
        raise InputError(f"got {len(request.inputs)} texts; a trace of a translator is of one source text")
    (text,) = request.inputs
    tokenizer, device = pipeline.tokenizer, next(pipeline.model.parameters()).device
    source = pipeline.task.encode([text]).to(device)
    if request.target is not None:
        given = tokenizer.target.encode(request.target)
        target = [*given, tokenizer.eos_id][: request.max_new_tokens]
        written, strategy = request.target, "given"
    else:
        found = generate(pipeline.model, source, pipeline.strategy, pipeline.limits(source, [0]))[0][0]
        target = found.tokens[: request.max_new_tokens] or [tokenizer.eos_id]
        written, strategy = tokenizer.target.decode(target), str(pipeline.strategy)
    if request.batch:  # its row of the batch: rows may be the same text
        source = pipeline.task.encode(request.batch)[[list(request.batch).index(text)]].to(device)
    decoder_input = torch.tensor([[pipeline.model.config.special_ids.bos_id, *target[:-1]]], device=device)
    labels = tokenizer.token_labels(source[0].tolist())
    axes = {
        "source": Axis(tokens=tuple(labels), text=text, spans=byte_spans(text, labels)),
        "target": Axis(
            tokens=("<bos>", *tokenizer.target.token_labels(target[:-1])),
            text=written,
            next_tokens=tuple(tokenizer.target.token_labels(target)),
        ),
    }
    return TraceInputs(axes, lambda: pipeline.model(source, decoder_input), {"text": written}, strategy)
