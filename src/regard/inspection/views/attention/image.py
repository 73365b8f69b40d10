"""The attention of a captioner over its image: one picture for each word."""

from functools import partial

import numpy as np

from regard.inspection.attention_overlay import overlay
from regard.inspection.drawing.colors import IMAGE
from regard.inspection.drawing.layout import TOP, heading_width
from regard.inspection.drawing.scene import Figure, Frame, Item, Picture, Scene, Text, heading
from regard.inspection.trace import Trace
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    layer_of,
    needs_interface,
)

SIDE = 96.0
ROW = 5  # pictures in a row
MAX_WORDS = 24  # a picture each
MAX_TITLE = 70  # letters
GAP = 10.0
CAPTION = "Bright and violet is where the model looks while it writes the word; the number is its largest weight."


def draw(subject: Subject, choices: Choices) -> Figure:
    """The mean over all heads that look at the image, then each head."""
    trace = subject.trace
    chosen = choose_attention(trace, choices, where=lambda one: (one.queries, one.keys) == ("target", "image"))
    every = [trace.weights(one) for one in chosen]
    mean: np.ndarray = np.concatenate(every).mean(0)
    frames = [Frame("mean of all heads", partial(_scene, trace, mean, "mean of all heads"))]
    for attention, weights in zip(chosen, every, strict=True):
        layer = layer_of(trace, attention)
        check_head(choices.head, len(weights))
        for head in range(len(weights)) if choices.head is None else [choices.head]:
            name = f"layer {layer}, head {head}"
            frames.append(Frame(name, partial(_scene, trace, weights[head], name)))
    return Figure(frames, "attention", 0 if choices.head is None else len(frames) - 1)


def _scene(trace: Trace, weights: np.ndarray, name: str) -> Scene:
    image, axis = trace.image, trace.info.axes["image"]
    assert image is not None
    assert axis.grid is not None
    every, text = trace.info.axes["target"].generated, trace.info.axes["target"].text
    words = every[:MAX_WORDS]
    caption = CAPTION + (f" The first {MAX_WORDS} of {len(every)} tokens." if len(every) > MAX_WORDS else "")
    title = f"“{text if len(text) <= MAX_TITLE else text[:MAX_TITLE] + '…'}” ({name})"
    items: list[Item] = [*heading(title, caption), Picture(8, TOP, SIDE, SIDE, image, title="the image")]
    for number, (word, row) in enumerate(zip(words, weights, strict=False), 1):
        x = 8 + number % ROW * (SIDE + GAP)
        y = TOP + number // ROW * (SIDE + 30)
        cells = row[-axis.grid[0] * axis.grid[1] :].reshape(axis.grid)
        at = divmod(int(cells.argmax()), axis.grid[1])
        said = f"{word}: {cells.max():.6g} at row {at[0] + 1}, column {at[1] + 1}"
        items.append(Picture(x, y, SIDE, SIDE, overlay(image, cells), said))
        items.append(Text(x + SIDE / 2, y + SIDE + 9, f"{word}  {cells.max():.2f}", color=IMAGE, anchor="center"))
    rows = -(-(len(words) + 1) // ROW)
    width = max(8 + ROW * (SIDE + GAP), heading_width(title, caption))
    return Scene(width, TOP + rows * (SIDE + 30), items, title, caption)


VIEW = View(
    "image",
    "where a captioner looks for each word",
    draw,
    ("*.weights", "decoder.weights"),
    needs_interface("captioner"),
    takes=("attention", "layer", "head"),
)
