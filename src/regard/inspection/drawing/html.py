"""Draw a figure as one HTML file that needs no network: all frames, of which the reader chooses one.

Matrices are canvases over numbers in binary (half precision, base64), never an element for each weight; a large one is
pooled. Where the mouse rests, a cell says its row, its column and its number. Behind each canvas is a table.
"""

import base64
import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from regard.inspection.drawing.colors import RAMPS
from regard.inspection.drawing.scene import Figure, Item, Line, Matrix, Rectangle, Scene, Text, printable
from regard.inspection.drawing.svg import to_svg

MAX_SIDE = 1024  # of a matrix in a page; a larger one is pooled
MAX_CELLS = 4_000_000  # of all matrices of a page: 11 MB; where they are more, all are pooled further
TABLE_CELLS = 2_500  # a larger matrix has its largest numbers in its table, not all


def to_html(figure: Figure) -> str:
    """The whole page."""
    title = figure.frames[figure.chosen].draw().title
    return (
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(printable(title))}</title>\n{fragment(figure)}\n</html>\n"
    )


def fragment(figure: Figure) -> str:
    """The figure as an element that brings its own style and script; several may stand in one page, or a notebook."""
    text = json.dumps(figure_data(figure), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    style, script = _resource("figure.css"), _resource("figure.js")
    return (
        "<regard-figure><template shadowrootmode=open></template>"
        f'<script type="application/json" class="regard-style">{json.dumps(style)}</script>'
        f'<script type="application/json" class="regard-data">{text}</script></regard-figure>\n'
        f"<script>{script}</script>"
    )


def figure_data(figure: Figure) -> dict[str, Any]:
    """What <regard-figure> draws: all frames as text, numbers in binary and SVG."""
    scenes = [frame.draw() for frame in figure.frames]
    side = _side_of(scenes)
    frames = [_frame(frame.name, scene, side) for frame, scene in zip(figure.frames, scenes, strict=True)]
    return {"choice": figure.choice, "chosen": figure.chosen, "frames": frames, "ramps": RAMPS}


def _side_of(scenes: list[Scene]) -> int:
    """The largest side of a matrix with which all matrices of a page fit in it."""
    shapes = [item.values.shape for scene in scenes for item in scene.items if isinstance(item, Matrix)]
    side = MAX_SIDE
    while side > 64 and sum(_pooled_size(shape, side) for shape in shapes) > MAX_CELLS:
        side //= 2
    return side


def _pooled_size(shape: tuple[int, ...], side: int) -> int:
    factor = -(-max(shape) // side)
    return -(-shape[0] // factor) * -(-shape[1] // factor)


def _frame(name: str, scene: Scene, side: int) -> dict[str, Any]:
    above = [item for item in scene.items if _is_above(item)]
    below = [item for item in scene.items if not _is_above(item) and not isinstance(item, Matrix)]
    return {
        "name": printable(name),
        "title": printable(scene.title),
        "caption": printable(scene.caption),
        "width": scene.width,
        "height": scene.height,
        "svg": to_svg(scene, below),
        "above": to_svg(scene, above, background=False),
        "matrices": list(_matrices(scene, side)),
    }


def _is_above(item: Item) -> bool:
    """Whether an item is drawn above the canvases: text, lines and frames may stand on a matrix."""
    return isinstance(item, Text | Line) or (isinstance(item, Rectangle) and item.fill is None)


def _matrices(scene: Scene, side: int) -> Iterator[dict[str, Any]]:
    for item in scene.items:
        if isinstance(item, Matrix):
            values, factor = pooled(item.values, side)
            yield {
                "box": [item.x, item.y, item.width, item.height],
                "shape": list(values.shape),
                "pooled": factor,
                "values": _base64(values.astype("<f4" if values.size <= TABLE_CELLS else "<f2")),
                "exact": values.size <= TABLE_CELLS,
                "masked": _bits(item.masked, factor),
                "outlined": _bits(item.outlined, factor),
                "rows": [printable(item.row(row)) for row in range(item.values.shape[0])],
                "columns": [printable(item.column(column)) for column in range(item.values.shape[1])],
                "ramp": item.ramp,
                "low": item.low,
                "high": item.high,
                "digits": item.digits,
                "name": printable(item.name),
            }


def pooled(values: np.ndarray, side: int) -> tuple[np.ndarray, int]:
    """Values with at most `side` rows and columns, and how many of the rows and columns were joined in one cell.

    A cell is the maximum of what it joins, so that no large weight is lost.
    """
    factor = -(-max(values.shape) // side)
    if factor == 1:
        return values, 1
    rows, columns = (-(-size // factor) * factor for size in values.shape)
    padded = np.full((rows, columns), -np.inf, np.float32)
    padded[: values.shape[0], : values.shape[1]] = values
    cells: np.ndarray = padded.reshape(rows // factor, factor, columns // factor, factor).max((1, 3))
    return cells, factor


def _bits(cells: np.ndarray | None, factor: int) -> str | None:
    """Which cells are masked, or outlined; of a pooled matrix none."""
    return None if cells is None or factor > 1 else _base64(np.packbits(cells, bitorder="little"))


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _resource(name: str) -> str:
    return files("regard.inspection.drawing").joinpath(name).read_text(encoding="utf-8")
