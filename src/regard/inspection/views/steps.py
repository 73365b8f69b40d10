"""Decoding step by step: the text so far, the next token, the attention of the newest position, and the KV cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from regard.inspection.decoding import CacheSize, cache_size, cached_attentions, decoding_steps, has_no_cache
from regard.inspection.drawing.colors import FAINT, INK, KEY, PAPER
from regard.inspection.drawing.layout import TOP, Block, Style, bars, heading_width, labelled
from regard.inspection.drawing.scene import Figure, Frame, Item, Line, Matrix, Rectangle, Scene, Text, heading
from regard.inspection.predictions import output_axis, output_tokenizer, text_until, token_labels, token_logits
from regard.inspection.trace import AttentionInfo, Trace
from regard.inspection.views.base import Choices, Subject, View, key_labels

NUM_BARS = 8
MAX_SHOWN = 24  # of the newest positions
CAPTION = "The newest token attends to the text so far; its keys and values join the KV cache; the next one is chosen."


@dataclass(frozen=True)
class _Decoding:
    """What all steps share."""

    trace: Trace
    pipeline: Any
    logits: Tensor  # (T, V)
    size: CacheSize
    attentions: Sequence[AttentionInfo]  # of the last layer: to the text so far, then to the source


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a step."""
    pipeline, trace = subject.require_model("steps"), subject.trace
    assert subject.inputs is not None
    logits = token_logits(subject.inputs, output_tokenizer(pipeline).vocab_size)
    own = cached_attentions(trace.info)[-1]
    cross = [one for one in trace.attentions() if one.queries == own.queries and one.keys != own.keys][-1:]
    decoding = _Decoding(trace, pipeline, logits, cache_size(trace, pipeline.model), [own, *cross])
    steps = decoding_steps(trace.info)
    axis = output_axis(trace.info)
    frames = [
        Frame(f"{number + 1} {axis.generated[at]}", partial(_scene, decoding, at, number + 1, len(steps)))
        for number, at in enumerate(steps)
    ]
    return Figure(frames, "step", len(frames) - 1)


def _scene(decoding: _Decoding, at: int, number: int, total: int) -> Scene:
    axis = output_axis(decoding.trace.info)
    title = f"step {number} of {total}: {text_until(axis, at)} → {axis.generated[at]}"
    items: list[Item] = heading(title, CAPTION)
    y, right = TOP, heading_width(title, CAPTION)
    for attention in decoding.attentions:
        block = _attention(decoding, attention, at, y)
        items += block.items
        y, right = y + block.height + 12, max(right, block.width + 20)
    block = _next_tokens(decoding, at, y)
    items += block.items
    y += block.height + 12
    block = _cache(decoding, at, y)
    items += block.items
    return Scene(max(right, block.width + 20), y + block.height + 10, items, title, CAPTION)


def _attention(decoding: _Decoding, attention: AttentionInfo, at: int, y: float) -> Block:
    """The weights of the newest position, the mean over the heads of the last layer."""
    weights = decoding.trace.weights(attention).mean(0)[at]
    labels, first = key_labels(decoding.trace, attention), 0
    if attention.queries == attention.keys:
        weights, first = weights[: at + 1], max(at + 1 - MAX_SHOWN, 0)
    shown = weights[None, first:][:, :MAX_SHOWN]
    columns = labels[first : first + shown.shape[1]]
    newest = decoding.trace.info.axes[attention.queries].tokens[at]
    num_omitted = len(weights) - shown.shape[1]
    text = f"attention to the {attention.keys}, mean of the heads of the last layer"
    text += f" (without {num_omitted} more positions)" if num_omitted else ""
    block = labelled(8, y + 14, shown, [newest], columns, Style((26, 20)), name=f"attention to the {attention.keys}")
    return Block([Text(8, y + 5, text, size=8, color=FAINT), *block.items], block.width, block.height + 14)


def _next_tokens(decoding: _Decoding, at: int, y: float) -> Block:
    shown = decoding.logits[at].softmax(-1).topk(min(NUM_BARS, decoding.logits.shape[-1]))
    labels = token_labels(decoding.pipeline, shown.indices.tolist())
    chosen = output_axis(decoding.trace.info).generated[at]
    others = [label != chosen for label in labels]
    block = bars(8, y + 12, labels, shown.values.tolist(), width=200, faint=others if not all(others) else ())
    named = Text(8, y + 5, "the next token; the one that was chosen is blue", size=8, color=FAINT)
    return Block([named, *block.items], block.width, block.height + 12)


def _cache(decoding: _Decoding, at: int, y: float) -> Block:
    """Layers × positions, each cell the bytes of its keys and values; what is not yet read is hatched."""
    size, axis = decoding.size, output_axis(decoding.trace.info)
    first = max(at + 1 - MAX_SHOWN, 0)
    last = min(first + MAX_SHOWN, len(axis.tokens))
    values = np.full((size.layers, last - first), size.layer_bytes, np.float32)
    masked = np.broadcast_to(np.arange(first, last) > at, values.shape)
    rows = [f"layer {number}" for number in range(size.layers)]
    style = Style((26, 14), "key", 0.0, 3.0 * size.layer_bytes, None, (INK, KEY))
    block = labelled(8, y + 14, values, rows, axis.tokens[first:last], style, masked=masked, name="KV cache, bytes")
    sizes = f"2 × {size.kv_heads} × {size.head_width} × {size.number_bytes}"
    found = size.bytes_of(at + 1)
    text = "KV cache, layers × positions × 2 × heads × width × bytes of a number: "
    text += f"{size.layers} × {at + 1} × {sizes} = {found:,} bytes"
    matrix = block.items[0]
    assert isinstance(matrix, Matrix)
    newest = Rectangle(matrix.x + (at - first) * 26, matrix.y, 26, matrix.height, stroke=KEY, line_width=1.6)
    told = Text(8, y + 5, text, size=8, color=FAINT, title=f"bytes: {found}")
    return Block([told, *block.items, *_grid_lines(matrix), newest], block.width, block.height + 14)


def _grid_lines(matrix: Matrix) -> list[Item]:
    """White lines between the cells."""
    rows, columns = matrix.values.shape
    across = [matrix.y + row * matrix.cell_height for row in range(1, rows)]
    down = [matrix.x + column * matrix.cell_width for column in range(1, columns)]
    right, bottom = matrix.x + matrix.width, matrix.y + matrix.height
    return [
        *(Line([(matrix.x, y), (right, y)], PAPER) for y in across),
        *(Line([(x, matrix.y), (x, bottom)], PAPER) for x in down),
    ]


VIEW = View(
    "steps",
    "decoding step by step: the next token, attention, the KV cache",
    draw,
    ("*.weights", "*.keys", "*.queries"),
    has_no_cache,
    max_new_tokens=8,
)
