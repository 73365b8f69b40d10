"""Equations of matrices: X × W = Q, each matrix below its name and its size."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.inspection.drawing.colors import FAINT, INK, KEY, QUERY
from regard.inspection.drawing.layout import GAP, Block, Style, labelled
from regard.inspection.drawing.scene import Item, Matrix, Text
from regard.inspection.maps.labels import text_width

COLUMNS = 8  # of a wide matrix that are shown
ROWS = 8  # of a long one
CELL = (25.0, 15.0)
SIGN = 22.0  # the room of an operator
NAME = 15.0  # the room of a name above a matrix
APART = 18.0  # two matrices, one above the other


@dataclass(frozen=True)
class Part:
    """One matrix with its name, and the operator before it; a ramp without `ends` is from its smallest value up."""

    name: str
    values: np.ndarray
    ramp: str
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    masked: np.ndarray | None = None
    ends: tuple[float, float] | None = None
    has_labels: bool = False  # of its rows
    sign: str = ""
    bias: np.ndarray | None = None  # a row below
    colors: tuple[str, str] = (QUERY, KEY)  # of the labels of rows and columns
    digits: int | None = None  # None: as many as there is room for

    @property
    def shown(self) -> np.ndarray:
        found: np.ndarray = self.values[:ROWS, :COLUMNS]
        return found

    @property
    def size(self) -> str:
        """How large it is, and how much of it is shown."""
        whole, shown = (f"{one.shape[0]} × {one.shape[1]}" for one in (self.values, self.shown))
        return whole if whole == shown else f"{shown} of {whole}"


def equations(x: float, y: float, lines: Sequence[Sequence[Part]]) -> Block:
    """Lines of matrices, one below the other."""
    items: list[Item] = []
    width, down = 0.0, y
    for parts in lines:
        block = _line(x, down, parts)
        items += block.items
        width, down = max(width, block.width), down + block.height + APART
    return Block(items, width, down - APART - y)


def _line(x: float, y: float, parts: Sequence[Part]) -> Block:
    """Matrices side by side: their first rows at one height, the operators at the middle of the shortest."""
    items: list[Item] = []
    across, bottom = x, y
    above = [_matrix(_drawn(0, 0, part, 0)).y for part in parts]
    middle = y + max(above) + CELL[1] * min(len(part.shown) for part in parts) / 2
    for part, own in zip(parts, above, strict=True):
        if part.sign:
            items.append(Text(across + SIGN / 2, middle, part.sign, 13, anchor="center"))
            across += SIGN
        top = y + max(above) - own
        block = _drawn(across, top, part, y if part.columns else top)
        items += block.items
        across, bottom = across + block.width, max(bottom, top + block.height)
    return Block(items, across - x, bottom - y)


def _matrix(block: Block) -> Matrix:
    return next(item for item in block.items if isinstance(item, Matrix))


def _drawn(x: float, y: float, part: Part, name_y: float) -> Block:
    """A matrix below its name and its size, which stand at `name_y`."""
    shown, columns = part.shown, list(part.columns[:COLUMNS])
    rows = list(part.rows[:ROWS])
    masked = None if part.masked is None else part.masked[:ROWS, :COLUMNS]
    low, high = part.ends or (float(shown.min()), float(shown.max()))
    digits = part.digits if part.digits is not None else 2 if max(high, -low) < 10 else 1
    labels = (rows if part.has_labels else [], columns)
    above = NAME if columns else 0.0  # else the name stands where the labels of columns would
    style = Style(CELL, part.ramp, low, high, digits, part.colors)
    block = labelled(x, y + above, shown, *labels, style, masked=masked, name=part.name)
    matrix = replace(_matrix(block), rows=rows, columns=columns)
    items: list[Item] = [matrix, *(item for item in block.items if not isinstance(item, Matrix))]
    items.append(Text(matrix.x, name_y + NAME / 2, part.name, bold=True))
    size = Text(matrix.x + text_width(part.name, 10) + 2 * GAP, name_y + NAME / 2, part.size, 7, FAINT)
    items.append(size)
    height = block.height + above
    if part.bias is not None:
        items += _bias_row(matrix, part.bias, y + height + GAP)
        height += GAP + CELL[1]
    right = max(x + block.width, size.x + text_width(size.text, 7))
    return Block(items, right - x, height)


def _bias_row(weight: Matrix, bias: np.ndarray, y: float) -> list[Item]:
    """b below its W."""
    values = bias[None, :COLUMNS]
    sign = Text(weight.x - GAP, y + CELL[1] / 2, "+ b", 9, INK, "right", bold=True)
    return [replace(weight, y=y, values=values, rows=["b"], name=f"b of {weight.name}"), sign]
