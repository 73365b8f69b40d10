"""The logit lens: the most probable token after each layer, at each position."""

import numpy as np

from regard.inspection.drawing.colors import FAINT, KEY, QUERY, shade, text_on
from regard.inspection.drawing.layout import GAP, TOP, heading_width, widest
from regard.inspection.drawing.scene import Anchor, Figure, Item, Matrix, Scene, Text, heading, in_drawing
from regard.inspection.lens import has_no_lens, lens_logits
from regard.inspection.maps.labels import text_width
from regard.inspection.predictions import fills_masks, output_axis, output_tokenizer, token_labels
from regard.inspection.views.base import Choices, Subject, View

ROW = 20.0
MIN_CELL = 34.0
MAX_CELL = 60.0
NAME = "probability of the most probable token"
SIZE = 8.0  # of the tokens in the cells


def draw(subject: Subject, choices: Choices) -> Figure:
    """One row a layer, the last at the top, as a network is drawn."""
    pipeline, info = subject.require_model("lens"), subject.trace.info
    assert subject.inputs is not None
    logits = lens_logits(pipeline.model, subject.inputs, subject.trace, output_tokenizer(pipeline).vocab_size)
    best = logits.softmax(-1).max(-1)
    values = best.values.cpu().numpy()[::-1]
    labels = [token_labels(pipeline, row) for row in best.indices.tolist()][::-1]
    rows = [f"layer {number}" for number in range(len(values))][::-1]
    title = "logit lens: the most probable token after each layer"
    told = "the token at this position" if fills_masks(info) else "the token after it"
    caption = (
        f"Below, the input. Each cell is what the output layer makes of the hidden state: {told}; dark is probable."
    )
    columns = output_axis(info).tokens
    items, width, height = _grid(values, labels, rows, columns)
    width = max(width, heading_width(title, caption))
    return Figure.of(Scene(width, height, [*heading(title, caption), *items], title, caption))


def _grid(
    values: np.ndarray, labels: list[list[str]], rows: list[str], columns: tuple[str, ...]
) -> tuple[list[Item], float, float]:
    """The cells with their tokens, the layers to the left and the input below; and where they end."""
    left = 8 + widest(rows) + GAP
    cell = min(max(widest([label for row in labels for label in row], SIZE) + 4, MIN_CELL), MAX_CELL)
    matrix = Matrix(left, TOP, cell, ROW, values, rows, columns, name=NAME, texts=labels)
    items: list[Item] = [matrix]
    colors = shade(values, matrix.ramp, matrix.low, matrix.high)
    for row, tokens in enumerate(labels):
        y = TOP + (row + 0.5) * ROW
        items.append(Text(left - GAP, y, rows[row], color=QUERY, anchor="right"))
        for column, token in enumerate(tokens):
            title = f"{rows[row]}, {columns[column]} → {token}: {values[row, column]:.6g}"
            x = left + (column + 0.5) * cell
            items.append(Text(x, y, _fitted(token, cell), SIZE, text_on(colors[row, column]), "center", title=title))
    below = TOP + matrix.height
    upright = widest(columns) > cell - 2
    for column, token in enumerate(columns):
        x = left + (column + 0.5) * cell
        place = (x, below + GAP) if upright else (x, below + 10)
        anchor: Anchor = "right" if upright else "center"
        items.append(Text(*place, token, 9, KEY, anchor, rotated=upright))
    bottom = below + (widest(columns) + 2 * GAP if upright else 22)
    items.append(Text(left - GAP, below + 10, "input", size=8, color=FAINT, anchor="right"))
    return in_drawing(items), left + matrix.width + 12, bottom


def _fitted(token: str, room: float) -> str:
    """A token that fits its cell; its title has all of it."""
    while len(token) > 1 and text_width(token, SIZE) > room:
        token = token[:-2] + "…"
    return token


VIEW = View("lens", "the logit lens: what each layer would predict", draw, ("*.hidden",), has_no_lens)
