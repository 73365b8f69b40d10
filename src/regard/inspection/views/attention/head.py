"""One head: its attention weights as a matrix, and as lines from each query to the keys it attends to."""

from dataclasses import replace
from functools import partial

from regard.inspection.drawing.layout import MARGIN, TOP, framed, labelled, weights_style
from regard.inspection.drawing.links import linked, rule, top_of
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.inspection.trace import AttentionInfo, Trace
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    key_labels,
    needs_attention,
    query_labels,
)

APART = 36.0  # the matrix and the lines
MIN_ROW = 5.5  # of a token beside the lines
LONG = 512  # tokens: of a longer text the heads of one layer are drawn, unless one is chosen


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a head, of every layer that was chosen; of a long text, of the first layer."""
    trace = subject.trace
    frames = []
    attentions = choose_attention(trace, choices)
    if choices.head is None and max(trace.weights(attentions[0]).shape[1:]) > LONG:
        attentions = attentions[:1]
    for attention in attentions:
        num_heads = len(trace.weights(attention))
        check_head(choices.head, num_heads)
        for head in range(num_heads) if choices.head is None else [choices.head]:
            frames.append(Frame(f"{attention.path}, head {head}", partial(_scene, trace, attention, head)))
    return Figure(frames, "head")


def _scene(trace: Trace, attention: AttentionInfo, head: int) -> Scene:
    weights = trace.weights(attention)[head]
    queries, keys = query_labels(trace, attention), key_labels(trace, attention)
    name = f"{attention.path}, head {head}"
    style = weights_style(weights.shape)
    if style.digits is None:  # small cells: shades alone have to tell
        style = replace(style, high=top_of(weights))
    matrix = labelled(MARGIN, TOP, weights, queries, keys, style, name=name)
    row = max(style.cell[1], MIN_ROW)
    above = matrix.height - style.cell[1] * len(queries)  # the room of the matrix's labels: rows stand side by side
    lines = linked(MARGIN + matrix.width + APART, TOP + above, queries, keys, weights, row)
    caption = f"Queries (blue) attend to keys (orange); each row sums to 1. {rule(weights)}; thick is a large weight."
    height = max(matrix.height, above + lines.height)
    return framed(name, caption, [*matrix.items, *lines.items], matrix.width + APART + lines.width, height)


VIEW = View(
    "head", "one head as a matrix and as lines", draw, missing=needs_attention, takes=("attention", "layer", "head")
)
