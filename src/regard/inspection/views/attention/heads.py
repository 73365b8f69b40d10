"""The atlas: every head of every layer as a small matrix, sorted by the pattern of its attention."""

from collections import Counter
from functools import partial

import numpy as np

from regard.inspection.drawing.colors import FAINT, INK
from regard.inspection.drawing.html import pooled
from regard.inspection.drawing.layout import TOP, framed
from regard.inspection.drawing.links import top_of
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text, in_drawing
from regard.inspection.patterns import PATTERNS, head_pattern
from regard.inspection.trace import AttentionInfo, Trace
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    choose_attention,
    key_labels,
    layer_of,
    needs_attention,
    query_labels,
)

SIDE = 64.0  # of one head, in points
RESOLUTION = 64  # of one head, in cells
GAP = 10.0
LABEL = 20.0
LEGEND = 12.0  # a line of the legend
CAPTION = "One small matrix a head: queries down, keys across; dark is a large weight. The label is its pattern."


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame for each kind of attention (encoder, decoder, cross), layers down and heads across."""
    trace = subject.trace
    kinds: dict[tuple[str, str], list[AttentionInfo]] = {}
    for one in choose_attention(trace, choices):
        kinds.setdefault((one.queries, one.keys), []).append(one)
    frames = [
        Frame(f"{queries} attends to {keys}", partial(_scene, trace, queries, keys, found))
        for (queries, keys), found in kinds.items()
    ]
    return Figure(frames, "attention")


def _scene(trace: Trace, queries: str, keys: str, attentions: list[AttentionInfo]) -> Scene:
    title = f"all heads: {queries} attends to {keys}"
    items: list[Item] = []
    most, y = 0, TOP
    seen: Counter[str] = Counter()
    for attention in attentions:
        weights, layer = trace.weights(attention), layer_of(trace, attention)
        most = max(most, len(weights))
        items.append(Text(8, y + SIDE / 2, f"layer {layer}", color=FAINT, in_drawing=True))
        special = np.array([label.startswith(("[", "<")) for label in key_labels(trace, attention)])
        order = _by_pattern(weights, special, square=queries == keys)
        for place, (head, pattern) in enumerate(order):
            x = 56 + place * (SIDE + GAP)
            items.append(_head(trace, attention, weights[head], x, y, f"layer {layer}, head {head}: {pattern}"))
            named = [Text(x, y + SIDE + 6, f"head {head}", size=7, color=INK)]
            named += [Text(x, y + SIDE + 14, pattern, size=7, color=FAINT, title=PATTERNS[pattern])]
            items += in_drawing(named)
            seen[pattern] += 1
        y += SIDE + LABEL + GAP
    items += _legend(seen, y)
    return framed(title, CAPTION, items, 48 + most * (SIDE + GAP), y - TOP + LEGEND * len(seen))


def _legend(seen: Counter[str], y: float) -> list[Item]:
    """What the patterns that were seen mean, and how many heads have each."""
    named = [(name, meaning) for name, meaning in PATTERNS.items() if seen[name]]
    items: list[Item] = []
    for number, (name, meaning) in enumerate(named):
        middle = y + (number + 0.5) * LEGEND
        items.append(Text(56, middle, name, 8, bold=True))
        count = f"{seen[name]} head{'s' if seen[name] > 1 else ''}"
        items.append(Text(110, middle, f"{meaning}: {count}", 8, FAINT))
    return items


def _by_pattern(weights: np.ndarray, special: np.ndarray, *, square: bool) -> list[tuple[int, str]]:
    """The heads of one layer, those of one pattern beside each other."""
    named = [(head, head_pattern(one, special, square=square)) for head, one in enumerate(weights)]
    return sorted(named, key=lambda one: (list(PATTERNS).index(one[1]), one[0]))


def _head(trace: Trace, attention: AttentionInfo, weights: np.ndarray, x: float, y: float, name: str) -> Matrix:
    cells, factor = pooled(weights, RESOLUTION)
    rows, columns = query_labels(trace, attention)[::factor], key_labels(trace, attention)[::factor]
    sizes = SIDE / cells.shape[1], SIDE / cells.shape[0]
    return Matrix(x, y, *sizes, cells, rows, columns, "query", 0.0, top_of(weights), name=f"{attention.path}, {name}")


VIEW = View(
    "heads", "every head of every layer, sorted by pattern", draw, missing=needs_attention, takes=("attention", "layer")
)
