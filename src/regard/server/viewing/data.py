"""What the page asks of a model: figures, traces, predictions and steps of decoding, as JSON and packed arrays.

Every function takes the task and the pipeline of a model, and computes nothing itself that `regard show`,
`regard trace` and `regard run` do not compute. `pack` is how arrays reach the page: the length of a JSON header in four
bytes, the header, then the numbers.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from regard.errors import InputError
from regard.inspection.capture import points
from regard.inspection.decoding import cache_size, has_no_cache
from regard.inspection.drawing.html import figure_data, pooled, to_html
from regard.inspection.drawing.raster import save_raster
from regard.inspection.drawing.scene import Figure
from regard.inspection.drawing.svg import to_svg
from regard.inspection.interventions import intervene, parse_switches
from regard.inspection.patterns import head_pattern
from regard.inspection.predictions import (
    fills_masks,
    output_axis,
    output_tokenizer,
    predicts_no_tokens,
    token_labels,
    token_logits,
)
from regard.inspection.trace import IMAGE, Trace, tap_of
from regard.inspection.tracing import record
from regard.inspection.views import views_of
from regard.tasks.base import RunRequest, Task, TraceRequest
from regard.tasks.show import describe

ATLAS_SIDE = 64  # cells of a head in the atlas
EXACT_CELLS = 2**18  # numbers of one value that are sent in single precision; of a larger one in half
WEIGHTS = "*.weights"
MAX_GENERATED = 256
CANDIDATES = 60  # next tokens that are named
MASK = "[MASK]"


# ------------------------------------------------ arrays


def pack(arrays: Mapping[str, np.ndarray], **more: Any) -> bytes:
    """Arrays and JSON as one body, which the page reads without parsing the numbers."""
    parts, body, start = [], [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        data += b"\0" * (-len(data) % 4)
        parts.append({"name": name, "shape": list(array.shape), "dtype": str(array.dtype), "start": start})
        body.append(data)
        start += len(data)
    header = json.dumps({"arrays": parts, **more}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 4)
    return len(header).to_bytes(4, "little") + header + b"".join(body)


def sendable(array: np.ndarray) -> np.ndarray:
    """Single precision, or half for many numbers."""
    return array.astype(np.float32 if array.size <= EXACT_CELLS else np.float16)


# ------------------------------------------------ figures

FORMATS = {
    "data": "application/json",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}


def encode_figure(figure: Figure, form: str) -> bytes:
    """The figure in one of FORMATS; a picture has the chosen frame."""
    if form == "data":
        return json.dumps({**figure_data(figure), "notes": list(figure.notes)}, ensure_ascii=False).encode()
    if form == "html":
        return to_html(figure).encode()
    if form == "svg":
        return to_svg(figure.scene).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"figure.{form}"
        save_raster(figure.scene, path)
        return path.read_bytes()


# ------------------------------------------------ traces


def trace_of(task: Task, pipeline: Any, request: TraceRequest, taps: Sequence[str]) -> Trace:
    """One pass with the values of all points that match; many weights are kept in half precision."""
    paths = [path for path in points(pipeline.model) if any(fnmatchcase(path, tap) for tap in taps)]
    with intervene(pipeline.model, parse_switches(request.switched_off, pipeline.model)) as changes:
        inputs = task.trace_inputs(pipeline, request)
        trace = record(pipeline, task.name, inputs, paths, interventions=changes)
    if sum(value.nbytes for value in trace.values.values()) <= 64 << 20:
        return trace
    halved = {name: value if name == IMAGE else value.astype(np.float16) for name, value in trace.values.items()}
    return Trace(trace.info, halved)


def trace_json(trace: Trace) -> dict[str, Any]:
    """What a trace says, without its numbers."""
    info = trace.info.model_dump(mode="json", exclude={"config", "versions"})
    count: dict[tuple[str, str], int] = {}
    for one in info["attentions"]:
        kind = (one["queries"], one["keys"])
        one["layer"] = count[kind] = count.get(kind, -1) + 1
        weights = trace.values.get(tap_of(one["path"], "weights"))
        if weights is not None:
            one["shape"], one["patterns"] = list(weights.shape), patterns(trace, one)
    info["views"] = [
        {"name": one.name, "summary": one.summary, "takes": list(one.takes), "of_a_run": False}
        for one in views_of(trace.info)
        if all(any(fnmatchcase(name, tap) for name in trace.values) for tap in one.taps) and one.taps
    ]
    return {**info, "values": {name: list(value.shape) for name, value in trace.values.items()}}


def patterns(trace: Trace, attention: Mapping[str, str]) -> list[str]:
    """The pattern of each head."""
    keys = trace.info.axes[attention["keys"]].tokens
    special = np.array([label.startswith(("[", "<")) for label in keys])
    weights = trace.values[tap_of(attention["path"], "weights")]
    square = attention["queries"] == attention["keys"]
    return [head_pattern(head.astype(np.float32), special, square=square) for head in weights]


def atlas(trace: Trace) -> bytes:
    """Every head of every attention with at most ATLAS_SIDE rows and columns, in half precision."""
    found: dict[str, np.ndarray] = {}
    for one in trace.attentions():
        weights = trace.values[tap_of(one.path, "weights")]
        found[one.path] = np.stack([pooled(head, ATLAS_SIDE)[0] for head in weights]).astype(np.float16)
    return pack(found)


def value_of(trace: Trace, paths: Sequence[str], head: int | None) -> bytes:
    """Values by their paths; of a value with heads one of them, or of fewer key heads the one that it shares."""
    found: dict[str, np.ndarray] = {}
    for path in paths:
        value = trace.value(path)
        if head is not None and value.ndim == 3:
            name = tap_of(path.rpartition(".")[0], "weights")
            num_heads = len(trace.values.get(name, value))
            if not 0 <= head < num_heads:
                raise InputError(f"head {head}: wanted 0 to {num_heads - 1}")
            value = value[head * len(value) // num_heads]
        found[path] = value if value.dtype == np.uint8 else sendable(value)
    return pack(found)


# ------------------------------------------------ predictions


def predictions(task: Task, pipeline: Any, request: TraceRequest) -> bytes:
    """The logits that decide the next token, or each masked one, and the most probable tokens by name."""
    reason = predicts_no_tokens(describe(task, pipeline))
    if reason is not None:
        raise InputError(f"this {pipeline.kind} has no next token: {reason}")
    with intervene(pipeline.model, parse_switches(request.switched_off, pipeline.model)):
        inputs = task.trace_inputs(pipeline, request)
        logits = token_logits(inputs, output_tokenizer(pipeline).vocab_size)
    info = describe(task, pipeline).model_copy(update={"axes": dict(inputs.axes)})
    axis = output_axis(info)
    places = [len(axis.tokens) - 1]
    if fills_masks(info):
        places = [place for place, label in enumerate(axis.tokens) if label == MASK]
        if not places:
            raise InputError(f"there is no {MASK} in this text; write one in place of a word")
    rows = logits[places]
    named = []
    for row in rows:
        ids = row.topk(min(CANDIDATES, len(row))).indices.tolist()
        texts = None if fills_masks(info) else _continued(pipeline, request, ids)
        ends = set(_end_ids(pipeline))
        labels = token_labels(pipeline, ids)
        named.append(
            [
                {"id": number, "label": label, "text": texts[at] if texts else None, "end": number in ends}
                for at, (number, label) in enumerate(zip(ids, labels, strict=True))
            ]
        )
    tokens = list(axis.tokens)
    return pack({"logits": rows.numpy().astype(np.float32)}, candidates=named, positions=places, tokens=tokens)


def _continued(pipeline: Any, request: TraceRequest, ids: Sequence[int]) -> list[str]:
    """The whole text after each of these tokens."""
    tokenizer = output_tokenizer(pipeline)
    if pipeline.model.interface == "causal_lm":
        before = pipeline.encode(request.inputs[0])
    else:
        before = tokenizer.encode(request.target or "")
    return [tokenizer.decode([*before, number]) for number in ids]


def _end_ids(pipeline: Any) -> list[int]:
    found = getattr(output_tokenizer(pipeline), "eos_ids", None)
    if found is None:
        found = [pipeline.model.config.special_ids.eos_id]
    return [number for number in found if number is not None]


def answer_of(task: Task, pipeline: Any, request: TraceRequest) -> Any:
    """What the model answers, as `regard run --json` prints it."""
    with intervene(pipeline.model, parse_switches(request.switched_off, pipeline.model)):
        if pipeline.model.interface in ("causal_lm", "seq2seq", "captioner"):
            return task.trace_inputs(pipeline, request).answer
        options = task.options.model_validate({} if request.boxes is None else {"boxes": request.boxes})
        given = RunRequest(list(request.inputs), options, as_json=True)
        found = [one.data for one in task.run(pipeline, given) if hasattr(one, "data")]
    return found[0] if len(found) == 1 else found


# ------------------------------------------------ decoding step by step


@torch.inference_mode()
def decode(task: Task, pipeline: Any, request: TraceRequest, count: int, *, cached: bool) -> Iterator[dict[str, Any]]:
    """Greedy decoding, one line a token: with the KV cache, or all tokens so far read again at every step."""
    count = min(count, MAX_GENERATED)
    model, tokenizer = pipeline.model, output_tokenizer(pipeline)
    ends, vocab_size = set(_end_ids(pipeline)), tokenizer.vocab_size
    prompt, source = _prefix(task, pipeline, request)
    ids, state = list(prompt), None
    for number in range(count):
        start = time.perf_counter()
        if not cached:
            row = _whole_pass(model, source, ids)
        else:
            if state is None:
                state = model.start([ids] if source is None else source)
                tokens = state.first
            logits, state = model.step(tokens, state)
            row = logits[0]
        chosen = int(row[:vocab_size].argmax())
        seconds = time.perf_counter() - start
        tokens = torch.tensor([chosen], device=row.device)
        ids.append(chosen)
        new = ids if source is None else ids[1:]
        probability = float(row[:vocab_size].float().softmax(-1)[chosen])
        yield {
            "step": number + 1,
            "label": token_labels(pipeline, [chosen])[0],
            "text": tokenizer.decode([one for one in new if one not in ends]),
            "probability": probability,
            "milliseconds": 1000 * seconds,
            "read": 1 if cached and number else len(ids) - 1,
            "positions": len(ids) - 1,
            "end": chosen in ends,
        }
        if chosen in ends:
            return


def _prefix(task: Task, pipeline: Any, request: TraceRequest) -> tuple[list[int], Any]:
    """The ids that stand before the first new token, and what an encoder reads."""
    interface = pipeline.model.interface
    if interface == "causal_lm":
        return pipeline.encode(request.inputs[0]), None
    device = next(pipeline.model.parameters()).device
    if interface == "seq2seq":
        source = pipeline.task.encode(list(request.inputs[:1])).to(device)
    elif interface == "captioner":
        source = pipeline.task.read(pipeline.pixels_of(request.inputs[0])[None]).to(device)
    else:
        raise InputError(f"a model for {task.name} does not generate text; choose a translator or a language model")
    return [pipeline.model.config.special_ids.bos_id], source


def _whole_pass(model: Any, source: Any, ids: list[int]) -> Any:
    """The logits of the last position, from all tokens so far."""
    row = torch.tensor([ids], device=next(model.parameters()).device)
    logits = model(row) if source is None else model(source, row)
    return logits[0, -1]


def cache_json(task: Task, pipeline: Any, request: TraceRequest) -> dict[str, Any] | None:
    """What the KV cache keeps of each position; None: the model has none."""
    if has_no_cache(describe(task, pipeline)) is not None:
        return None
    trace = trace_of(task, pipeline, request, ["*.keys", "*.queries"])
    size = cache_size(trace, pipeline.model)
    config = pipeline.model.config
    full = getattr(config, "context", None) or getattr(config, "max_positions", None)
    return {**asdict(size), "bytes": size.bytes_of(1), "context": full}
