"""Sinusoidal positions: 51 vectors of 130 and of 512 dimensions as heat maps, and some dimensions as curves."""

from functools import partial

import numpy as np

from regard.inspection.drawing.charts import Axis, Curve, chart
from regard.inspection.drawing.colors import FAINT, HEADS, INK
from regard.inspection.drawing.layout import GAP, MARGIN, TOP, framed
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text
from regard.layers.positions import SinusoidalPositions

POSITIONS = 51  # 0 to 50
WIDTH = 130
WIDER = 512
DRAWN = (0, 10, 20, 40, 60)  # the dimensions that are drawn as curves
SIZE = (520.0, 255.0)
LEFT = 34.0


def draw() -> Figure:
    """Three frames: the heat map of each width, and the curves."""
    frames = [Frame(f"{width} dimensions", partial(_heat_map, width)) for width in (WIDTH, WIDER)]
    return Figure([*frames, Frame("curves", _curves)], "figure")


def vectors(width: int) -> np.ndarray:
    """The vectors (T, D) of positions 0 to 50."""
    found: np.ndarray = SinusoidalPositions(POSITIONS, width)(0, POSITIONS).numpy()
    return found


def _heat_map(width: int) -> Scene:
    values = vectors(width)
    title = f"sinusoidal positions 0 to {POSITIONS - 1}, {width} dimensions"
    caption = (
        "One row a position: sine in even columns, cosine in odd ones. Blue 1, white 0, brown \N{MINUS SIGN}1. "
        "The waves get longer to the right."
    )
    rows, columns = ([str(number) for number in range(size)] for size in values.shape)
    box = (LEFT + MARGIN, TOP + GAP, SIZE[0] / width, SIZE[1] / POSITIONS)
    matrix = Matrix(*box, values, rows, columns, "diverging", -1.0, 1.0, name="sinusoidal positions")
    items = [matrix, *_ticks(matrix, 10 if width == WIDTH else 50)]
    return framed(title, caption, items, LEFT + SIZE[0] + GAP, SIZE[1] + GAP + 28)


def _ticks(matrix: Matrix, step: int) -> list[Item]:
    """The numbers of every tenth row and of every `step`th column, and the names of both axes."""
    bottom, left = matrix.y + matrix.height, matrix.x
    items: list[Item] = [
        Text(left + matrix.width / 2, bottom + 22, "dimension", 8, INK, "center"),
        Text(MARGIN + 4, matrix.y + matrix.height / 2, "position", 8, INK, "center", rotated=True),
    ]
    for column in range(0, matrix.values.shape[1], step):
        items.append(Text(left + (column + 0.5) * matrix.cell_width, bottom + 8, str(column), 8, FAINT, "center"))
    for row in range(0, POSITIONS, 10):
        items.append(Text(left - GAP, matrix.y + (row + 0.5) * matrix.cell_height, str(row), 8, FAINT, "right"))
    return items


def _curves() -> Scene:
    values, places = vectors(WIDTH), list(range(POSITIONS))
    title = f"sinusoidal positions: five of {WIDTH} dimensions"
    caption = "A curve is a column of the heat map, sin(position / 10000^(i / 130)): the frequency falls with i."
    curves = [
        Curve(f"i = {column}", places, values[:, column].tolist(), color, dots=True)
        for column, color in zip(DRAWN, HEADS, strict=False)
    ]
    across, up = Axis("position", list(range(0, POSITIONS, 10))), Axis("value", [-1, -0.5, 0, 0.5, 1])
    block = chart(MARGIN, TOP, (460, 200), across, up, curves)
    return framed(title, caption, block.items, block.width, block.height)
