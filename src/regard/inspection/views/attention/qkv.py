"""Queries, keys and values of one head as matrices, from the model's own numbers: X W = Q to softmax(Q Kᵀ / √K) V."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from torch import nn

from regard.inspection.drawing.colors import FAINT, INK
from regard.inspection.drawing.layout import GAP, MARGIN, TOP, Block, Style, framed, labelled
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text
from regard.inspection.maps.labels import text_width
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

COLUMNS = 8  # of a wide matrix that are shown
TOKENS = 8  # of a long text that are shown
CELL = (25.0, 15.0)
SIGN = 22.0  # the room of an operator
NAME = 15.0  # the room of a name above a matrix
APART = 18.0  # two matrices, one above the other
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
    left = _lines(MARGIN, TOP, lines)
    scale = getattr(module, "similarity", SCALED_DOT).scale(step["queries"].shape[-1])
    biased = not np.allclose(step["scores"] * scale, step["scaled_scores"], rtol=1e-3, atol=1e-3)
    steps = _attended(step, queries, keys, f"× {scale:.3g}{' + bias' if biased else ''}")
    right = _lines(MARGIN + left.width + 2 * SIGN, TOP, steps)
    caption = CAPTION + (", rotated by position before the scores." if query.is_rotated else ".")
    title = f"queries, keys and values: {attention.path}, head {head}"
    width, height = left.width + 2 * SIGN + right.width, max(left.height, right.height)
    return framed(title, caption, [*left.items, *right.items], width, height)


def _projected(letter: str, ramp: str, given: _Given) -> list["_Part"]:
    """X W + b = Q, and what the rotation by position makes of it."""
    weight, bias = given.projection.weight, given.projection.bias
    line = [
        _Part(given.name, given.inputs, "grey", given.labels, has_labels=True),
        _Part(f"W_{letter}", weight, ramp, sign="×", bias=bias),
    ]
    if not given.is_rotated:
        return [*line, _Part(letter, given.found, ramp, given.labels, sign="=")]
    rotated = _Part(f"{letter} rotated", given.found, ramp, given.labels, sign="→")
    return [*line, _Part(letter, given.projected, ramp, given.labels, sign="="), rotated]


def _attended(
    step: dict[str, np.ndarray], queries: Sequence[str], keys: Sequence[str], scaled: str
) -> list[list["_Part"]]:
    """Scores, scaled scores, weights and Z, one below the other."""
    hidden = np.isneginf(step["masked_scores"])
    scores = _Part("scores Q Kᵀ", step["scores"], "query", queries, keys, has_labels=True)
    return [
        [scores],
        [replace(scores, name=f"scores {scaled}", values=step["scaled_scores"], masked=hidden)],
        [replace(scores, name="softmax", values=step["weights"], masked=hidden, ends=(0.0, 1.0))],
        [_Part("Z = softmax V", step["head_outputs"], "value", queries, has_labels=True)],
    ]


def _steps(trace: Trace, attention: AttentionInfo, head: int) -> dict[str, np.ndarray]:
    """Every step of one head; in grouped-query attention there are fewer keys and values than heads."""
    num_heads = len(trace.weights(attention))
    found = {name: trace.value(tap_of(attention.path, name)) for name in STEPS}
    return {name: value[head * len(value) // num_heads] for name, value in found.items()}


# ------------------------------------------------ placing matrices


@dataclass(frozen=True)
class _Part:
    """One matrix with its name, and the operator before it; a ramp without `ends` is from its smallest value up."""

    name: str
    values: np.ndarray
    ramp: str
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    masked: np.ndarray | None = None
    ends: tuple[float, float] | None = None
    has_labels: bool = False
    sign: str = ""
    bias: np.ndarray | None = None  # a row below

    @property
    def shown(self) -> np.ndarray:
        found: np.ndarray = self.values[:TOKENS, :COLUMNS]
        return found

    @property
    def size(self) -> str:
        """How large it is, and how much of it is shown."""
        whole, shown = (f"{one.shape[0]} × {one.shape[1]}" for one in (self.values, self.shown))
        return whole if whole == shown else f"{shown} of {whole}"


def _lines(x: float, y: float, lines: Sequence[Sequence[_Part]]) -> Block:
    """Lines of matrices, one below the other."""
    items: list[Item] = []
    width, down = 0.0, y
    for parts in lines:
        across, height = x, 0.0
        for part in parts:
            across += SIGN if part.sign else 0
            block = _drawn(across, down, part)
            items += block.items
            across, height = across + block.width, max(height, block.height)
        width, down = max(width, across - x), down + height + APART
    return Block(items, width, down - APART - y)


def _drawn(x: float, y: float, part: _Part) -> Block:
    """A matrix below its name and its size, with the operator to its left."""
    shown, columns = part.shown, list(part.columns[:COLUMNS])
    rows = list(part.rows[:TOKENS])
    masked = None if part.masked is None else part.masked[:TOKENS, :COLUMNS]
    low, high = part.ends or (float(shown.min()), float(shown.max()))
    style = Style(CELL, part.ramp, low, high, 2 if max(high, -low) < 10 else 1)
    labels = (rows, columns) if part.has_labels else ([], [])
    above = NAME if columns else 0.0  # else the name stands where the labels of columns would
    block = labelled(x, y + above, shown, *labels, style, masked=masked, name=part.name)
    matrix = replace(next(item for item in block.items if isinstance(item, Matrix)), rows=rows, columns=columns)
    items: list[Item] = [matrix, *(item for item in block.items if not isinstance(item, Matrix))]
    items.append(Text(matrix.x, y + NAME / 2, part.name, bold=True))
    items.append(Text(matrix.x + text_width(part.name, 10) + 2 * GAP, y + NAME / 2, part.size, 7, FAINT))
    if part.sign:
        items.append(Text(x - SIGN / 2, matrix.y + 3 * CELL[1], part.sign, 13, anchor="center"))
    height = block.height + above
    if part.bias is not None:
        items += _bias_row(matrix, part.bias, y + height + GAP)
        height += GAP + CELL[1]
    return Block(items, block.width, height)


def _bias_row(weight: Matrix, bias: np.ndarray, y: float) -> list[Item]:
    """b below its W."""
    values = bias[None, :COLUMNS]
    sign = Text(weight.x - GAP, y + CELL[1] / 2, "+ b", 9, INK, "right", bold=True)
    return [replace(weight, y=y, values=values, rows=["b"], name=f"b of {weight.name}"), sign]


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
)
