"""Traces that requests ask for with "trace": true, kept until they are fetched or others need their room."""

import threading
import uuid
from collections import OrderedDict
from typing import Any

import torch
from fastapi import APIRouter, Request, Response
from safetensors.numpy import save

from regard.inspection.trace import Axis, Trace, byte_spans
from regard.inspection.tracing import TraceInputs, record
from regard.server.errors import APIError
from regard.server.models import ServedModel
from regard.server.requests import StrictRoute
from regard.server.texts import Text
from regard.server.workers import Workers

PATTERNS = ("*.weights",)
router = APIRouter(prefix="/api", route_class=StrictRoute, tags=["look inside"])


class TraceStore:
    """The newest traces, as many as fit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._traces, self._lock = max_bytes, OrderedDict[str, bytes](), threading.Lock()

    def add(self, trace: bytes) -> str:
        """Its id; APIError where it is larger than all the room."""
        if len(trace) > self._max_bytes:
            message = f"the trace has {len(trace):,} bytes, at most {self._max_bytes:,} wanted; shorten the text"
            raise APIError(400, message, param="trace", code="trace_too_large")
        name = f"trace-{uuid.uuid4().hex}"
        with self._lock:
            self._traces[name] = trace
            while sum(map(len, self._traces.values())) > self._max_bytes:
                self._traces.popitem(last=False)
        return name

    def get(self, name: str) -> bytes | None:
        with self._lock:
            return self._traces.get(name)


@router.get("/trace/{name}", response_class=Response)
def fetch(name: str, request: Request) -> Response:
    """A trace that a request asked for: the bytes of a trace file."""
    found = request.app.state.traces.get(name)
    if found is None:
        raise APIError(404, "there is no such trace: its id is wrong, or newer ones took its room", code="no_trace")
    return Response(found, media_type="application/octet-stream")


async def trace_generation(request: Request, model: str, text: Text) -> str:
    """The id of a trace of one pass over a prompt and what was generated after it."""
    workers: Workers = request.app.state.workers
    found = await workers.run(model, lambda served: _record(served, text))
    name: str = request.app.state.traces.add(found)
    return name


def _record(served: ServedModel, text: Text) -> bytes:
    inputs = generation_inputs(served.pipeline, text.prompt, text.tokens)
    return trace_bytes(record(served.pipeline, served.task.name, inputs, PATTERNS))


def generation_inputs(pipeline: Any, prompt: list[int], tokens: list[int]) -> TraceInputs:
    """A teacher-forced pass over a prompt and its continuation."""
    tokenizer, row = pipeline.tokenizer, [*prompt, *tokens]
    ids = torch.tensor([row], device=next(pipeline.model.parameters()).device)
    with torch.inference_mode():
        predicted = pipeline.model(ids)[0, :, : tokenizer.vocab_size].argmax(-1).tolist()
    next_ids = [*predicted[: len(prompt) - 1], *tokens, predicted[-1]]
    labels = tokenizer.token_labels(row)
    text, written = tokenizer.decode(prompt), tokenizer.decode(tokens, continuing=True)
    axis = Axis(
        tokens=tuple(labels),
        text=text + written,
        spans=byte_spans(text + written, labels),
        next_tokens=tuple(tokenizer.token_labels([number])[0] for number in next_ids),
        num_prompt=len(prompt),
    )
    return TraceInputs({"text": axis}, lambda: pipeline.model(ids), {"prompt": text, "text": written}, "served")


def trace_bytes(found: Trace) -> bytes:
    return save(dict(found.values), {"regard": found.info.model_dump_json()})
