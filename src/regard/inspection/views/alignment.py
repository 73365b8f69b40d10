"""The alignment matrix as in the lectures: source across, target down, one row for each token that was chosen."""

from functools import partial

import numpy as np

from regard.inspection.drawing.layout import TOP, Style, labelled
from regard.inspection.drawing.scene import Figure, Frame, Scene, heading
from regard.inspection.trace import AttentionInfo, Trace, TraceInfo
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    key_labels,
    query_labels,
)

CAPTION = "Each row is one generated token, and sums to 1: how much it attends to each source token."


def draw(subject: Subject, choices: Choices) -> Figure:
    """The mean over all layers and heads first, then each layer and each head."""
    trace = subject.trace
    chosen = [one for one in choose_attention(trace, choices) if one.queries != one.keys]
    frames = [Frame("mean of all heads", partial(_scene, trace, chosen[0], _mean(trace, chosen), "mean of all heads"))]
    for layer, attention in enumerate(chosen):
        weights = trace.weights(attention)
        check_head(choices.head, len(weights))
        for head in range(len(weights)) if choices.head is None else [choices.head]:
            name = f"layer {layer}, head {head}"
            frames.append(Frame(name, partial(_scene, trace, attention, weights[head], name)))
    return Figure(frames, "attention", 0 if choices.head is None else len(frames) - 1)


def _mean(trace: Trace, chosen: list[AttentionInfo]) -> np.ndarray:
    mean: np.ndarray = np.mean([trace.weights(one).mean(0) for one in chosen], axis=0)
    return mean


def _scene(trace: Trace, attention: AttentionInfo, weights: np.ndarray, name: str) -> Scene:
    rows, columns = query_labels(trace, attention), key_labels(trace, attention)
    digits = 2 if weights.size <= 600 else None
    cell = (30.0, 20.0) if digits is not None else (10.0, 10.0)
    block = labelled(8, TOP, weights, rows, columns, Style(cell, digits=digits), name=f"attention, {name}")
    title = f"alignment: {name}"
    width = max(block.width + 24, 420)
    return Scene(width, TOP + block.height + 12, [*heading(title, CAPTION), *block.items], title, CAPTION)


def _missing(info: TraceInfo) -> str | None:
    if not any(one.queries != one.keys for one in info.attentions):
        return "it has no attention from a target to a source"
    return None if info.interface == "seq2seq" else "it is for models with a source text and a target text"


VIEW = View(
    "alignment", "which source token each generated token attends to", draw, ("*.weights", "bridge.weights"), _missing
)
