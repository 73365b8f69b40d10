"""The KV cache: its keys as they grow, the memory it takes, and the multiply-adds it saves."""

from functools import partial
from typing import Any

import numpy as np

from regard.errors import InputError
from regard.inspection.decoding import (
    CacheSize,
    cache_size,
    cached_attentions,
    decoding_steps,
    has_no_cache,
    step_cost,
)
from regard.inspection.drawing.colors import FAINT, INK, KEY, QUERY
from regard.inspection.drawing.layout import TOP, Block, Style, bars, heading_width, labelled
from regard.inspection.drawing.scene import Figure, Frame, Item, Scene, Text, heading
from regard.inspection.predictions import output_axis
from regard.inspection.trace import AttentionInfo, Trace, tap_of
from regard.inspection.views.base import Choices, Subject, View, check_head

MAX_WIDTH = 64  # numbers of a key that are shown
MAX_ROWS = 32  # the newest positions
KIB = 1024


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a step."""
    pipeline, trace = subject.require_model("cache"), subject.trace
    attentions = cached_attentions(trace.info)
    layer, head = choices.layer or 0, choices.head or 0
    if not 0 <= layer < len(attentions):
        raise InputError(f"--layer {layer}: wanted 0 to {len(attentions) - 1}")
    size = cache_size(trace, pipeline.model)
    check_head(head, size.kv_heads)
    axis = output_axis(trace.info)
    frames = [
        Frame(
            f"{number + 1} {axis.tokens[at]}",
            partial(_scene, trace, pipeline.model.config, attentions[layer], size, f"layer {layer}, head {head}", at),
        )
        for number, at in enumerate(decoding_steps(trace.info))
    ]
    return Figure(frames, "step", len(frames) - 1)


def _scene(trace: Trace, config: Any, attention: AttentionInfo, size: CacheSize, name: str, at: int) -> Scene:
    positions = "1 position" if not at else f"{at + 1} positions"
    title = f"KV cache: the keys of {name}, {positions}"
    caption = "One row a position, one column a number of its key. A step adds the row of its token; the others stay."
    head = int(name.rpartition(" ")[2])
    keys = _keys(trace, attention, head, at, name)
    items: list[Item] = [*heading(title, caption), *keys.items]
    y, right = TOP + keys.height + 14, max(heading_width(title, caption), keys.width + 20)
    memory = _memory(size, config, trace, at, y)
    work = _work(config, trace, at, y + memory.height + 10)
    items += [*memory.items, *work.items]
    right = max(right, memory.width + 20, work.width + 20)
    return Scene(right, y + memory.height + work.height + 20, items, title, caption)


def _keys(trace: Trace, attention: AttentionInfo, head: int, at: int, name: str) -> Block:
    first = max(at + 1 - MAX_ROWS, 0)
    keys = trace.value(tap_of(attention.path, "keys"))[head, first : first + MAX_ROWS, :MAX_WIDTH]
    labels = output_axis(trace.info).tokens[first : first + len(keys)]
    high = float(np.abs(trace.value(tap_of(attention.path, "keys"))[head]).max())
    masked = np.broadcast_to(np.arange(first, first + len(keys))[:, None] > at, keys.shape)
    cell = min(400 / keys.shape[1], 20.0)
    style = Style((cell, 12), "diverging", -high, high, None, (KEY, FAINT))
    return labelled(8, TOP, keys, labels, [""] * keys.shape[1], style, masked=masked, name=f"keys, {name}")


def _memory(size: CacheSize, config: Any, trace: Trace, at: int, y: float) -> Block:
    """Bytes now and at full context, with the model's key heads and with one for each query head."""
    own = f"{size.kv_heads} key heads" if size.kv_heads > 1 else "1 key head"
    full = getattr(config, "context", None) or getattr(config, "max_positions", None)
    rows = {f"now, {own}": size.bytes_of(at + 1)}
    if size.kv_heads < size.heads:
        rows[f"now, {size.heads} key heads (no sharing)"] = size.bytes_of(at + 1, size.heads)
    for memory in {"source", "image"} & set(trace.info.axes):
        rows[f"the {memory}, once"] = size.bytes_of(len(trace.info.axes[memory].tokens))
    if full:
        rows[f"all {full:,} positions, {own}"] = size.bytes_of(full)
        if size.kv_heads < size.heads:
            rows[f"all {full:,} positions, {size.heads} key heads"] = size.bytes_of(full, size.heads)
    values = [number / KIB for number in rows.values()]
    block = bars(8, y + 12, list(rows), values, width=200, color=KEY, number="{:,.1f} KiB")
    text = "memory: 2 × layers × positions × key heads × head width × bytes of a number"
    return Block([Text(8, y + 4, text, size=8, color=INK), *block.items], block.width + 20, block.height + 14)


def _work(config: Any, trace: Trace, at: int, y: float) -> Block:
    """Multiply-adds of this step, with the cache and without it."""
    source = trace.info.axes.get("source")
    cost = step_cost(config, at + 1, None if source is None else len(source.tokens))
    rows = {"with the cache": cost.with_cache, "without it": cost.without_cache}
    values = [number / 1e6 for number in rows.values()]
    block = bars(8, y + 12, list(rows), values, width=200, color=QUERY, number="{:,.3f} million")
    text = f"multiply-adds of this step, which reads token {at + 1}: the text before it is not read again"
    return Block([Text(8, y + 4, text, size=8, color=INK), *block.items], block.width + 40, block.height + 14)


VIEW = View(
    "cache",
    "the keys of the KV cache, its memory, and the work it saves",
    draw,
    ("*.keys", "*.queries"),
    has_no_cache,
    max_new_tokens=8,
    takes=("layer", "head"),
)
