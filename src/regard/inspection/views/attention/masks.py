"""The mask of one head: its scaled scores before softmax and its weights after it, with masked cells hatched."""

from functools import partial

import numpy as np

from regard.inspection.drawing.layout import MARGIN, TOP, framed, labelled, weights_style
from regard.inspection.drawing.scene import Figure, Frame, Item, Scene, Text
from regard.inspection.trace import AttentionInfo, Trace, tap_of
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

APART = 28.0
NAME = 14.0  # the room of a name above a matrix


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a head of each text; a picture shows the first one that masks padding, or that masks something."""
    traces = [subject.trace, *subject.others]
    frames: list[Frame] = []
    masking: dict[str, list[int]] = {"padding": [], "anything": []}
    for number, trace in enumerate(traces):
        of = f"text {number + 1}: " if len(traces) > 1 else ""
        for attention in choose_attention(trace, choices):
            scores = trace.value(tap_of(attention.path, "masked_scores"))
            check_head(choices.head, len(scores))
            for head in range(len(scores)) if choices.head is None else [choices.head]:
                hidden = np.isneginf(scores[head])
                masking["padding"] += [len(frames)] * bool(hidden.all(0).any())
                masking["anything"] += [len(frames)] * bool(hidden.any())
                name = f"{of}{attention.path}, head {head}"
                frames.append(Frame(name, partial(_scene, trace, attention, head, name)))
    return Figure(frames, "head", next(iter([*masking["padding"], *masking["anything"], 0])))


def kind_of_mask(hidden: np.ndarray) -> str:
    """What a mask (queries, keys) hides, in words; True is masked."""
    rows, columns = hidden.shape
    padding = hidden.all(0)
    future = np.triu(np.ones((rows, columns), bool), columns - rows + 1)
    rest = hidden[:, ~padding]
    said = []
    if rest.any():
        is_causal = np.array_equal(rest, future[:, ~padding])
        said.append("Causal mask: no query attends to a later key" if is_causal else "Some pairs are masked")
    if padding.any():
        count = int(padding.sum())
        said.append(f"Padding mask: no query attends to {count} padding key{'s' if count > 1 else ''}")
    return ". ".join(said) or "Nothing is masked: every query attends to every key"


def _scene(trace: Trace, attention: AttentionInfo, head: int, name: str) -> Scene:
    scores = trace.value(tap_of(attention.path, "masked_scores"))[head]
    hidden = np.isneginf(scores)
    queries, keys = query_labels(trace, attention), key_labels(trace, attention)
    finite = scores[~hidden]
    most = float(np.abs(finite).max()) if finite.size else 1.0
    before = weights_style(scores.shape, "diverging", -most, most)
    after = weights_style(scores.shape)
    items: list[Item] = []
    x, height = MARGIN, 0.0
    names = ("before softmax: scaled scores", "after softmax: weights")
    for above, values, style in zip(names, (scores, trace.weights(attention)[head]), (before, after), strict=True):
        block = labelled(x, TOP + NAME, values, queries, keys, style, masked=hidden, name=above)
        items += [Text(x, TOP + NAME / 2, above, bold=True, in_drawing=True), *block.items]
        x, height = x + max(block.width, 190.0) + APART, max(height, block.height + NAME)
    caption = f"Hatched cells are masked: their score is -∞, so their weight is 0. {kind_of_mask(hidden)}."
    return framed(name, caption, items, x - APART - MARGIN, height)


VIEW = View(
    "masks",
    "the mask of one head, before and after softmax; several texts are padded",
    draw,
    ("*.masked_scores", "*.weights"),
    needs_attention,
    padded=True,
    takes=("attention", "layer", "head"),
)
