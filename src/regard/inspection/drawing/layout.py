"""The sizes of labels, matrices with their labels around them, and bars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.inspection.drawing.colors import FAINT, INK, KEY, QUERY
from regard.inspection.drawing.scene import Anchor, Item, Matrix, Rectangle, Scene, Text, heading
from regard.inspection.maps.labels import text_width

TOP = 38.0  # below the heading of a scene
GAP = 4.0
MARGIN = 8.0
MIN_LABEL = 5.0  # the smallest size of a label; where the cells are smaller, some labels are left out
MAX_NUMBERS = 600  # cells of a matrix that have their number in them


@dataclass(frozen=True)
class Block:
    """Items, and the room they take from the point where they were placed."""

    items: list[Item]
    width: float
    height: float


def widest(labels: Sequence[str], size: float = 9) -> float:
    """The room that the longest label takes."""
    return max((text_width(label, size) for label in labels), default=0.0)


def heading_width(title: str, caption: str) -> float:
    """The room that the heading of a scene takes; see `scene.heading`."""
    return 16 + max(0.95 * widest([title], 11), 0.95 * widest([caption], 8))


@dataclass(frozen=True)
class Style:
    """How a matrix is drawn; see `Matrix`."""

    cell: tuple[float, float] = (30, 20)  # width and height
    ramp: str = "query"
    low: float = 0.0
    high: float = 1.0
    digits: int | None = 2
    colors: tuple[str, str] = (QUERY, KEY)  # of the labels of rows and columns


WEIGHTS = Style()


def weights_style(shape: tuple[int, ...], ramp: str = "query", low: float = 0.0, high: float = 1.0) -> Style:
    """How attention weights of this shape are drawn: with their numbers if they are few, in small cells if many."""
    rows, columns = shape
    if rows * columns <= MAX_NUMBERS and columns <= 24:
        return Style((30, 20), ramp, low, high)
    side = min(10.0, max(600 / max(rows, columns), 0.5))
    return Style((side, side), ramp, low, high, None)


def framed(title: str, caption: str, items: Sequence[Item], width: float, height: float) -> Scene:
    """A scene of items below its title and caption: as wide as the items, or as the caption; margins are added."""
    room = max(width, text_width(title, 11) * 1.05, text_width(caption, 8) * 0.92)
    return Scene(room + 2 * MARGIN, TOP + height + MARGIN, [*heading(title, caption), *items], title, caption)


def labelled(
    x: float,
    y: float,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    style: Style = WEIGHTS,
    *,
    masked: np.ndarray | None = None,
    outlined: np.ndarray | None = None,
    name: str = "",
) -> Block:
    """A matrix with its labels to the left and above; labels that are wider than a cell stand upright.

    Where the cells are too small for all labels, every second, third, … one is drawn.
    """
    (wide, high), size = style.cell, min(9.0, max(style.cell[1] * 0.6, MIN_LABEL))
    standing = widest(columns, size) > wide - 2
    left, above = widest(rows, size) + GAP, (widest(columns, size) if standing else size * 1.3) + GAP
    range_ = (style.ramp, style.low, style.high)
    matrix = Matrix(
        x + left, y + above, wide, high, values, rows, columns, *range_, masked, style.digits, name, outlined
    )
    items: list[Item] = [matrix]
    for number, label in _some(rows, high, size):
        middle = matrix.y + (number + 0.5) * high
        items.append(Text(matrix.x - GAP, middle, label, size=size, color=style.colors[0], anchor="right"))
    for number, label in _some(columns, wide, size if standing else 0):
        middle = matrix.x + (number + 0.5) * wide
        down = matrix.y - GAP - (0 if standing else size / 2)
        anchor: Anchor = "left" if standing else "center"
        items.append(Text(middle, down, label, size, style.colors[1], anchor, rotated=standing))
    return Block(items, left + matrix.width, above + matrix.height)


def _some(labels: Sequence[str], cell: float, size: float) -> list[tuple[int, str]]:
    """The labels for which there is room, with their numbers: all, or every second, third, …"""
    step = max(1, math.ceil(size * 1.1 / cell))
    return list(enumerate(labels))[::step]


def bars(
    x: float,
    y: float,
    labels: Sequence[str],
    values: Sequence[float],
    *,
    width: float = 160,
    color: str = QUERY,
    faint: Sequence[bool] = (),
    high: float | None = None,
    number: str = "{:.1%}",
) -> Block:
    """Horizontal bars, one a row, each with its label and its number; `faint` ones are grey."""
    left, row = widest(labels) + GAP, 14.0
    most = high or max(max(values, default=0.0), 1e-9)
    items: list[Item] = []
    for at, (label, value) in enumerate(zip(labels, values, strict=True)):
        top = y + at * row
        shown = FAINT if faint and faint[at] else color
        items.append(Text(x + left - GAP, top + row / 2, label, color=FAINT if shown == FAINT else INK, anchor="right"))
        length = max(width * min(value / most, 1.0), 0.5)
        items.append(
            Rectangle(x + left, top + 2, length, row - 4, fill=shown, stroke=None, title=f"{label}: {value:.6g}")
        )
        items.append(Text(x + left + length + GAP, top + row / 2, number.format(value), size=8, color=FAINT))
    return Block(items, left + width + 40, row * len(labels))
