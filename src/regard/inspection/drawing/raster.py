"""Draw a scene as PNG or PDF, through matplotlib: the same items at the same places as in the SVG."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from regard.files import atomic_write
from regard.inspection.drawing.colors import MASKED, shade, text_on
from regard.inspection.drawing.scene import Item, Line, Matrix, Picture, Rectangle, Scene, Text, printable
from regard.inspection.drawing.svg import number_text

logger = logging.getLogger(__name__)

POINTS_PER_INCH = 72
DPI = 200


def save_raster(scene: Scene, path: Path) -> None:
    """Write the scene to a PNG or PDF file, by its suffix."""
    from matplotlib.figure import Figure  # takes half a second to import

    figure = Figure(figsize=(scene.width / POINTS_PER_INCH, scene.height / POINTS_PER_INCH))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.set_axis_off()
    for depth, item in enumerate(scene.items):
        _draw(axes, item, depth + 1)
    with atomic_write(path) as file, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=DPI, facecolor="white")
    glyphs = [one for one in warned if "missing from font" in str(one.message)]
    for other in (one for one in warned if one not in glyphs):
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if glyphs:
        logger.warning(
            f"{path}: its font lacks some characters, drawn as boxes; .svg and .html use the fonts of the viewer"
        )


def _draw(axes: Any, item: Item, depth: int) -> None:
    if isinstance(item, Text):
        _draw_text(axes, item, depth)
    elif isinstance(item, Rectangle):
        _draw_rectangle(axes, item, depth)
    elif isinstance(item, Line):
        _draw_line(axes, item, depth)
    elif isinstance(item, Picture):
        _draw_pixels(axes, item.pixels, (item.x, item.y, item.width, item.height), depth)
    else:
        _draw_matrix(axes, item, depth)


def _draw_text(axes: Any, item: Text, depth: float) -> None:
    text = printable(item.text).replace("$", r"\$")
    turned = {"rotation": 90, "rotation_mode": "anchor"} if item.rotated else {}
    weight = "bold" if item.bold else "normal"
    align = {"ha": item.anchor, "va": "center_baseline" if not item.rotated else "center", **turned}
    axes.text(item.x, item.y, text, fontsize=item.size, color=item.color, weight=weight, zorder=depth, **align)


def _draw_rectangle(axes: Any, item: Rectangle, depth: float) -> None:
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.patches import Rectangle as Patch

    look: dict[str, Any] = {
        "facecolor": item.fill or "none",
        "edgecolor": item.stroke or "none",
        "linewidth": item.line_width if item.stroke else 0,
        "alpha": item.opacity,
        "zorder": depth,
    }
    if item.radius:
        style = f"round,pad=0,rounding_size={item.radius}"
        axes.add_patch(FancyBboxPatch((item.x, item.y), item.width, item.height, boxstyle=style, **look))
    else:
        axes.add_patch(Patch((item.x, item.y), item.width, item.height, **look))


def _draw_line(axes: Any, item: Line, depth: float) -> None:
    points = np.array(item.points, np.float64)
    if item.curved and len(points) == 2:
        points = _curve(points)
    dashes = "--" if item.dashed else "-"
    look = {"color": item.color, "linewidth": item.width, "alpha": item.opacity, "zorder": depth}
    axes.plot(points[:, 0], points[:, 1], dashes, solid_capstyle="round", **look)
    if item.arrow:
        arrow = {"arrowstyle": "-|>", "color": item.color, "lw": item.width, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", points[-1], points[-2], arrowprops=arrow, zorder=depth)


def _curve(points: np.ndarray) -> np.ndarray:
    """Points on the S of a curved line: the cubic that the SVG has."""
    (x0, y0), (x1, y1) = points
    share, half = np.linspace(0, 1, 24)[:, None], (x1 - x0) / 2
    control = np.array([(x0, y0), (x0 + half, y0), (x1 - half, y1), (x1, y1)])
    weights = np.hstack([(1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3])
    curve: np.ndarray = weights @ control
    return curve


def _draw_pixels(axes: Any, pixels: np.ndarray, box: tuple[float, float, float, float], depth: float) -> None:
    x, y, width, height = box
    limits = axes.get_xlim(), axes.get_ylim()  # imshow changes them
    axes.imshow(pixels, extent=(x, x + width, y + height, y), aspect="auto", interpolation="nearest", zorder=depth)
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])


def _draw_matrix(axes: Any, matrix: Matrix, depth: float) -> None:
    colors = shade(matrix.values, matrix.ramp, matrix.low, matrix.high)
    _draw_pixels(axes, colors, (matrix.x, matrix.y, matrix.width, matrix.height), depth)
    if matrix.masked is not None:
        _hatch(axes, matrix, depth + 0.2)
    if matrix.digits is not None:
        size = min(8.0, matrix.cell_height * 0.5)
        for (row, column), value in np.ndenumerate(matrix.values):
            if matrix.masked is None or not matrix.masked[row, column]:
                x = matrix.x + (column + 0.5) * matrix.cell_width
                y = matrix.y + (row + 0.5) * matrix.cell_height
                text = number_text(float(value), matrix.digits)
                _draw_text(axes, Text(x, y, text, size, text_on(colors[row, column]), "center"), depth + 0.5)
    for frame in (Rectangle(matrix.x, matrix.y, matrix.width, matrix.height), *matrix.outlines):
        _draw_rectangle(axes, frame, depth + 0.6)


def _hatch(axes: Any, matrix: Matrix, depth: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle as Patch

    assert matrix.masked is not None
    size = (matrix.cell_width, matrix.cell_height)
    cells = [
        Patch((matrix.x + column * size[0], matrix.y + row * size[1]), *size)
        for row, column in np.argwhere(matrix.masked)
    ]
    look: dict[str, Any] = {"facecolor": "#eef0f3", "edgecolor": MASKED, "hatch": "//////", "linewidth": 0}
    axes.add_collection(PatchCollection(cells, zorder=depth, **look))
