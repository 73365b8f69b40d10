"""Draw a scene as SVG. Every number that a cell stands for is in its title, where the mouse shows it.

A matrix of many cells is one picture, so that a file does not have an element for each weight.
"""

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np

from regard.inspection.drawing.colors import MASKED, PAPER, hexadecimal, shade, text_on
from regard.inspection.drawing.scene import Item, Line, Matrix, Picture, Rectangle, Scene, Text, printable

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
MAX_CELLS = 4_000  # above: one picture
ANCHORS = {"left": "start", "center": "middle", "right": "end"}
HATCH = (
    '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="5" height="5" fill="#eef0f3"/><line x1="0" y1="0" x2="0" y2="5" stroke="{MASKED}" stroke-width="2"/>'
    "</pattern>"
)
ARROW = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker>'
)


def to_svg(scene: Scene, items: Sequence[Item] | None = None, *, background: bool = True) -> str:
    """The scene as an SVG document; or some of its items, where something else draws the others."""
    drawn = "\n".join(draw(item) for item in (scene.items if items is None else items))
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' if background else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {scene.width:g} {scene.height:g}" '
        f'width="{scene.width:g}" height="{scene.height:g}" font-family="{escape(FONT)}" role="img">\n'
        f"<title>{_text(scene.title)}</title><desc>{_text(scene.caption)}</desc>\n"
        f"<defs>{HATCH}{ARROW}</defs>\n"
        f"{paper}{drawn}\n</svg>\n"
    )


def draw(item: Item) -> str:
    """One item as SVG elements."""
    if isinstance(item, Text):
        return _draw_text(item)
    if isinstance(item, Rectangle):
        return _draw_rectangle(item)
    if isinstance(item, Line):
        return _draw_line(item)
    if isinstance(item, Picture):
        return _image(item.x, item.y, item.width, item.height, item.pixels, item.title)
    return _draw_matrix(item)


def cell_title(matrix: Matrix, row: int, column: int) -> str:
    """What the title of a cell says: its row, its column and its number."""
    value = float(matrix.values[row, column])
    hidden = matrix.masked is not None and bool(matrix.masked[row, column])
    shown = "masked" if hidden else f"{value:.6g}"
    return f"{matrix.row(row)} → {matrix.column(column)}: {shown}"


def png(pixels: np.ndarray) -> str:
    """Pixels as a data URL."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def number_text(value: float, digits: int) -> str:
    """A number as it stands in a cell; what is rounded to 0 has no sign."""
    if np.isfinite(value):
        text = f"{value:.{digits}f}"
        return text if float(text) else text.removeprefix("-")
    return "NaN" if np.isnan(value) else ("∞" if value > 0 else "-∞")


def _draw_matrix(matrix: Matrix) -> str:
    rows, columns = matrix.values.shape
    colors = shade(matrix.values, matrix.ramp, matrix.low, matrix.high)
    outlines = [_draw_rectangle(one) for one in matrix.outlines]
    if rows * columns > MAX_CELLS:
        ends = f"{np.nanmin(matrix.values):.6g} to {np.nanmax(matrix.values):.6g}"
        title = f"{matrix.name}: {rows} × {columns} values from {ends}"
        if matrix.masked is not None:
            colors[matrix.masked] = 0xD5
        picture = _image(matrix.x, matrix.y, matrix.width, matrix.height, colors, title)
        return "\n".join([picture, *outlines])
    cells = [_cell(matrix, row, column, colors[row, column]) for row in range(rows) for column in range(columns)]
    frame = Rectangle(matrix.x, matrix.y, matrix.width, matrix.height)
    return "\n".join([*cells, _draw_rectangle(frame), *outlines])


def _cell(matrix: Matrix, row: int, column: int, color: np.ndarray) -> str:
    x, y = matrix.x + column * matrix.cell_width, matrix.y + row * matrix.cell_height
    hidden = matrix.masked is not None and bool(matrix.masked[row, column])
    fill = "url(#hatch)" if hidden else hexadecimal(color)
    found = (
        f'<rect x="{x:g}" y="{y:g}" width="{matrix.cell_width:g}" height="{matrix.cell_height:g}" fill="{fill}">'
        f"<title>{_text(cell_title(matrix, row, column))}</title></rect>"
    )
    if matrix.digits is not None and not hidden:
        value = number_text(float(matrix.values[row, column]), matrix.digits)
        size = min(8.0, matrix.cell_height * 0.5)
        middle = (x + matrix.cell_width / 2, y + matrix.cell_height / 2)
        found += _draw_text(Text(*middle, value, size=size, color=text_on(color), anchor="center"))
    return found


def _draw_text(item: Text) -> str:
    turn = f' transform="rotate(-90 {item.x:g} {item.y:g})"' if item.rotated else ""
    weight = ' font-weight="bold"' if item.bold else ""
    title = f"<title>{_text(item.title)}</title>" if item.title else ""
    return (
        f'<text x="{item.x:g}" y="{item.y:g}" font-size="{item.size:g}" fill="{item.color}" '
        f'text-anchor="{ANCHORS[item.anchor]}" dominant-baseline="central"{weight}{turn} pointer-events="'
        f'{"auto" if item.title else "none"}">{title}{_text(item.text)}</text>'
    )


def _draw_rectangle(item: Rectangle) -> str:
    fill = item.fill or "none"
    stroke = f' stroke="{item.stroke}" stroke-width="{item.line_width:g}"' if item.stroke else ""
    radius = f' rx="{item.radius:g}"' if item.radius else ""
    opacity = f' opacity="{item.opacity:.3g}"' if item.opacity < 1 else ""
    title = f"<title>{_text(item.title)}</title>" if item.title else ""
    return (
        f'<rect x="{item.x:g}" y="{item.y:g}" width="{item.width:g}" height="{item.height:g}" fill="{fill}"'
        f"{stroke}{radius}{opacity}>{title}</rect>"
    )


def _draw_line(item: Line) -> str:
    (x0, y0), *rest = item.points
    if item.curved and len(rest) == 1:
        ((x1, y1),) = rest
        half = (x1 - x0) / 2
        path = f"M{x0:g} {y0:g}C{x0 + half:g} {y0:g} {x1 - half:g} {y1:g} {x1:g} {y1:g}"
    else:
        path = f"M{x0:g} {y0:g}" + "".join(f"L{x:g} {y:g}" for x, y in rest)
    opacity = f' opacity="{item.opacity:.3g}"' if item.opacity < 1 else ""
    dashed = ' stroke-dasharray="3 2"' if item.dashed else ""
    arrow = ' marker-end="url(#arrow)"' if item.arrow else ""
    title = f"<title>{_text(item.title)}</title>" if item.title else ""
    return (
        f'<path d="{path}" fill="none" stroke="{item.color}" stroke-width="{item.width:.3g}"'
        f"{opacity}{dashed}{arrow}>{title}</path>"
    )


def _image(x: float, y: float, width: float, height: float, pixels: np.ndarray, title: str) -> str:
    return (
        f'<image x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" preserveAspectRatio="none" '
        f'image-rendering="pixelated" href="{png(pixels)}"><title>{_text(title)}</title></image>'
    )


def _text(text: str) -> str:
    """Text for XML."""
    return escape(printable(text), quote=False)
