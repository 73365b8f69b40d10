"""Queries, keys and values of one head as matrices, from the model's own numbers: X W = Q to softmax(Q Kᵀ / √K) V."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from torch import nn

from regard.inspection.drawing.equations import SIGN, Part, equations
from regard.inspection.drawing.layout import MARGIN, TOP, framed
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.inspection.projections import PROJECTING, Projection, projections
from regard.inspection.trace import AttentionInfo, Trace, TraceInfo, tap_of
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    key_labels,
    query_labels,
)
from regard.layers.attention import SCALED_DOT, MultiHeadAttention

STEPS = ("queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "weights", "head_outputs")
CAPTION = "Left: X W = Q, K and V of this head. Right: softmax(Q Kᵀ scaled) V = Z. The numbers are the model's own"


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a head."""
    model, trace = subject.require_model("qkv").model, subject.trace
    frames = []
    for attention in choose_attention(trace, choices, where=partial(_is_projecting, model)):
        module, num_heads = model.get_submodule(attention.path), len(trace.weights(attention))
        check_head(choices.head, num_heads)
        for head in range(num_heads) if choices.head is None else [choices.head]:
            frames.append(Frame(f"{attention.path}, head {head}", partial(_scene, trace, attention, module, head)))
    return Figure(frames, "head")


def _is_projecting(model: nn.Module, attention: AttentionInfo) -> bool:
    return isinstance(model.get_submodule(attention.path), PROJECTING)


@dataclass(frozen=True)
class _Given:
    """What one matrix is made from: X, its labels, and the weights."""

    name: str  # of X
    inputs: np.ndarray
    labels: Sequence[str]
    projection: Projection
    found: np.ndarray  # the queries, keys or values that the model used

    @property
    def projected(self) -> np.ndarray:
        return self.projection(self.inputs)

    @property
    def is_rotated(self) -> bool:
        """Whether the model changed the product afterwards: it rotates queries and keys by position."""
        return not np.allclose(self.projected, self.found, rtol=1e-2, atol=1e-3 * float(np.abs(self.found).max()))


def _scene(trace: Trace, attention: AttentionInfo, module: nn.Module, head: int) -> Scene:
    step = _steps(trace, attention, head)
    queries, keys = query_labels(trace, attention), key_labels(trace, attention)
    inputs, of_memory = trace.value(tap_of(attention.path, "inputs")), attention.queries != attention.keys
    memory = trace.value(tap_of(attention.path, "memory")) if isinstance(module, MultiHeadAttention) else inputs
    by_query, by_key, by_value = projections(module, head)
    name = "memory M" if of_memory else "X"
    query = _Given("X", inputs, queries, by_query, step["queries"])
    key = _Given(name, memory, keys, by_key, step["keys"])
    value = _Given(name, memory, keys, by_value, step["values"])
    lines = [_projected("Q", "query", query), _projected("K", "key", key), _projected("V", "value", value)]
    left = equations(MARGIN, TOP, lines)
    scale = getattr(module, "similarity", SCALED_DOT).scale(step["queries"].shape[-1])
    biased = not np.allclose(step["scores"] * scale, step["scaled_scores"], rtol=1e-3, atol=1e-3)
    steps = _attended(step, queries, keys, f"× {scale:.3g}{' + bias' if biased else ''}")
    right = equations(MARGIN + left.width + 2 * SIGN, TOP, steps)
    caption = CAPTION + (", rotated by position before the scores." if query.is_rotated else ".")
    title = f"queries, keys and values: {attention.path}, head {head}"
    width, height = left.width + 2 * SIGN + right.width, max(left.height, right.height)
    return framed(title, caption, [*left.items, *right.items], width, height)


def _projected(letter: str, ramp: str, given: _Given) -> list[Part]:
    """X W + b = Q, and what the rotation by position makes of it."""
    weight, bias = given.projection.weight, given.projection.bias
    line = [
        Part(given.name, given.inputs, "grey", given.labels, has_labels=True),
        Part(f"W_{letter}", weight, ramp, sign="×", bias=bias),
    ]
    if not given.is_rotated:
        return [*line, Part(letter, given.found, ramp, given.labels, sign="=")]
    rotated = Part(f"{letter} rotated", given.found, ramp, given.labels, sign="→")
    return [*line, Part(letter, given.projected, ramp, given.labels, sign="="), rotated]


def _attended(
    step: dict[str, np.ndarray], queries: Sequence[str], keys: Sequence[str], scaled: str
) -> list[list[Part]]:
    """Scores, scaled scores, weights and Z, one below the other."""
    hidden = np.isneginf(step["masked_scores"])
    scores = Part("scores Q Kᵀ", step["scores"], "query", queries, keys, has_labels=True)
    return [
        [scores],
        [replace(scores, name=f"scores {scaled}", values=step["scaled_scores"], masked=hidden)],
        [replace(scores, name="softmax", values=step["weights"], masked=hidden, ends=(0.0, 1.0))],
        [Part("Z = softmax V", step["head_outputs"], "value", queries, has_labels=True)],
    ]


def _steps(trace: Trace, attention: AttentionInfo, head: int) -> dict[str, np.ndarray]:
    """Every step of one head; in grouped-query attention there are fewer keys and values than heads."""
    num_heads = len(trace.weights(attention))
    found = {name: trace.value(tap_of(attention.path, name)) for name in STEPS}
    return {name: value[head * len(value) // num_heads] for name, value in found.items()}


def _missing(info: TraceInfo) -> str | None:
    kinds = {one.__name__ for one in PROJECTING}
    paths = {one.path for one in info.attentions}
    if any(one.kind in kinds for one in info.modules if one.path in paths):
        return None
    return "it has no attention that projects queries, keys and values from its inputs"


VIEW = View(
    "qkv",
    "X W = Q, K and V, scores, softmax and Z of one head, in numbers",
    draw,
    tuple(f"*.{name}" for name in ("inputs", "memory", *STEPS)),
    _missing,
    takes=("attention", "layer", "head"),
)
