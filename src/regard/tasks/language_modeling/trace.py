"""A language model prepared for a trace: the prompt, and what was generated after it, as one axis."""

import torch

from regard.errors import InputError
from regard.generation import Greedy
from regard.inspection.trace import Axis, byte_spans
from regard.inspection.tracing import TraceInputs
from regard.tasks.base import TraceRequest
from regard.tasks.language_modeling.pipeline import TextGenerator


def trace_inputs(pipeline: TextGenerator, request: TraceRequest) -> TraceInputs:
    """The prompt, and with `max_new_tokens` the text that greedy decoding puts after it."""
    if request.batch:
        raise InputError("a language model pads nothing: its prompts say how long they are; give one text")
    if len(request.inputs) != 1:
        raise InputError(f"got {len(request.inputs)} texts; a trace of a language model is of one text")
    (text,) = request.inputs
    tokenizer = pipeline.tokenizer
    row, written = pipeline.encode(text), ""
    num_prompt = len(row)
    if request.max_new_tokens:
        found = pipeline.run(text, Greedy(), max_new_tokens=request.max_new_tokens).texts[0]
        row, written = [*row, *found.tokens][: pipeline.context], found.text
    ids = torch.tensor([row], device=pipeline.model.input_embeddings.device)
    with torch.inference_mode():
        predicted = pipeline.model(ids)[0, :, : tokenizer.vocab_size].argmax(-1).tolist()
    next_ids = [*predicted[: num_prompt - 1], *row[num_prompt:], predicted[-1]]
    labels = tokenizer.token_labels(row)
    axis = Axis(
        tokens=tuple(labels),
        text=text + written,
        spans=byte_spans(text + written, labels),
        next_tokens=tuple(tokenizer.token_labels([number])[0] for number in next_ids),
        num_prompt=num_prompt,
    )
    answer = {"prompt": text, "text": written}
    return TraceInputs({"text": axis}, lambda: pipeline.model(ids), answer, "greedy" if written else "")
