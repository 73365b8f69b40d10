"""Draw a scene as text: its title, its matrices as shaded cells, and below them its other text line by line."""

import numpy as np
from rich.text import Text as Line

from regard.inspection.drawing.scene import Line as DrawnLine
from regard.inspection.drawing.scene import Matrix, Scene, Text, printable
from regard.inspection.drawing.svg import number_text
from regard.inspection.heat_map import shade

MAX_COLUMNS = 24  # of a matrix in a terminal
BESIDE = 6.0  # a label is this near to its matrix
ROUGHLY = 5.0  # items whose middles are this near are on one line


def to_terminal(scene: Scene) -> Line:
    """The scene in words and shades; what does not fit a terminal is said to be left out."""
    found = Line(printable(scene.title), style="bold")
    if scene.caption:
        found.append(f"\n{printable(scene.caption)}", style="not bold dim")
    matrices = [item for item in scene.items if isinstance(item, Matrix)]
    for matrix in matrices:
        found.append("\n\n")
        if len(matrices) > 1 and matrix.name and matrix.values.shape[1] <= MAX_COLUMNS:
            found.append(f"{printable(matrix.name)}\n", style="not bold dim")
        found.append_text(_matrix(matrix))
    every = [item for item in scene.items if isinstance(item, Text)]
    texts = [item for item in every if not item.in_drawing and not _is_label(item, matrices)]
    lines = [line for line in _lines(texts) if line not in (scene.title, scene.caption)]
    if matrices and lines:
        found.append("\n")
    for line in lines:
        found.append(f"\n{printable(line)}", style="not bold")
    if any(isinstance(item, DrawnLine) for item in scene.items) and any(text.in_drawing for text in every):
        found.append("\n\nA file has the lines too: -o figure.png", style="not bold dim")
    return found


def _is_label(text: Text, matrices: list[Matrix]) -> bool:
    """Whether a text is the label of a row or a column, which stands in the matrix already."""
    if text.rotated:
        return True
    for one in matrices:
        beside = text.anchor == "right" and 0 <= one.x - text.x < BESIDE and one.y <= text.y <= one.y + one.height
        above = text.anchor == "center" and 0 <= one.y - text.y < 2 * BESIDE and one.x <= text.x <= one.x + one.width
        if beside or above:
            return True
    return False


def _matrix(matrix: Matrix) -> Line:
    rows, columns = matrix.values.shape
    if columns > MAX_COLUMNS:
        return Line(
            f"{printable(matrix.name)}: {rows} × {columns} values; write them to a file with -o", style="not bold dim"
        )
    named = [printable(label) for label in matrix.rows or [""] * rows]
    heads = [printable(label) for label in (matrix.columns or [""] * columns)]
    cells = [[_cell(matrix, row, column) for column in range(columns)] for row in range(rows)]
    margin = max(map(len, named), default=0)
    wide = [max(5, len(head), *(len(row[at]) for row in cells)) + 1 for at, head in enumerate(heads)]
    text = Line(" " * (margin + 1), style="not bold")
    for label, room in zip(heads, wide, strict=True):
        text.append(label.rjust(room), style="orange3")
    for row, label in enumerate(named):
        text.append(f"\n{label:>{margin}} ", style="blue")
        for column, room in enumerate(wide):
            text.append(cells[row][column].rjust(room))
    return text


def _cell(matrix: Matrix, row: int, column: int) -> str:
    value = float(matrix.values[row, column])
    if matrix.masked is not None and matrix.masked[row, column]:
        return "·"
    if matrix.texts:
        return printable(matrix.texts[row][column])
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "-inf" if value < 0 else "inf"
    if matrix.digits is not None:
        return number_text(value, matrix.digits)
    return shade((value - matrix.low) / max(matrix.high - matrix.low, 1e-12)) * 3


def _lines(texts: list[Text]) -> list[str]:
    """The texts, column after column, those of one height on one line, from left to right."""
    found: list[tuple[float, list[Text]]] = []
    for item in sorted(texts, key=lambda one: (one.column, one.y)):
        if found and found[-1][1][0].column == item.column and abs(found[-1][0] - item.y) < ROUGHLY:
            found[-1][1].append(item)
        else:
            found.append((item.y, [item]))
    return ["  ".join(one.text for one in sorted(line, key=lambda one: one.x)) for _, line in found]
