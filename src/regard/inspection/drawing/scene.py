"""What a figure is made of. A view returns a `Figure`; the files beside this one draw it.

Sizes are in points of a page: a column of a paper is about 250 wide, a slide about 700. Zero is the top left corner.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from regard.inspection.drawing.colors import FAINT, INK, MARK, RULE

Anchor = Literal["left", "center", "right"]


@dataclass(frozen=True)
class Text:
    """A line of text whose anchor is at x, and whose middle is at y; `title` is shown where the mouse rests."""

    x: float
    y: float
    text: str
    size: float = 9
    color: str = INK
    anchor: Anchor = "left"
    bold: bool = False
    rotated: bool = False  # upwards, by a quarter
    title: str = ""
    in_drawing: bool = False  # it labels lines, pixels or cells; a terminal leaves it out, since it draws none
    column: int = 0  # a terminal prints one column below the other, not line by line across them


@dataclass(frozen=True)
class Rectangle:
    """A rectangle; without `fill` only its frame."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = RULE
    line_width: float = 0.8
    opacity: float = 1.0
    radius: float = 0.0
    title: str = ""


@dataclass(frozen=True)
class Line:
    """A line through points (x, y); `curved`: between two points, as an S that starts and ends horizontally."""

    points: Sequence[tuple[float, float]]
    color: str = INK
    width: float = 1.0
    opacity: float = 1.0
    curved: bool = False
    dashed: bool = False
    arrow: bool = False  # at its end
    title: str = ""


@dataclass(frozen=True)
class Picture:
    """Pixels (rows, columns, 3) of uint8, drawn as sharp cells."""

    x: float
    y: float
    width: float
    height: float
    pixels: np.ndarray
    title: str = ""


@dataclass(frozen=True)
class Matrix:
    """Values (rows, columns) as shaded cells, each of the same size.

    `low` and `high` are the ends of the ramp. Cells of `masked` are hatched grey, those of `outlined` have a frame. The
    labels name rows and columns for titles and tables; `layout.labelled` draws them too. With `digits`, each cell has
    its number in it.
    """

    x: float
    y: float
    cell_width: float
    cell_height: float
    values: np.ndarray
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    ramp: str = "query"
    low: float = 0.0
    high: float = 1.0
    masked: np.ndarray | None = None
    digits: int | None = None
    name: str = ""  # what the numbers are, for titles and tables
    outlined: np.ndarray | None = None
    texts: Sequence[Sequence[str]] = ()  # what stands in the cells, where a terminal can show it

    @property
    def width(self) -> float:
        return self.cell_width * self.values.shape[1]

    @property
    def height(self) -> float:
        return self.cell_height * self.values.shape[0]

    @property
    def outlines(self) -> "list[Rectangle]":
        """The frames of the outlined cells."""
        if self.outlined is None:
            return []
        places = np.argwhere(self.outlined).tolist()
        corners = [(self.x + column * self.cell_width, self.y + row * self.cell_height) for row, column in places]
        return [Rectangle(x, y, self.cell_width, self.cell_height, stroke=MARK, line_width=1.6) for x, y in corners]

    def row(self, number: int) -> str:
        return self.rows[number] if self.rows else str(number)

    def column(self, number: int) -> str:
        return self.columns[number] if self.columns else str(number)


Item = Text | Rectangle | Line | Picture | Matrix


@dataclass(frozen=True)
class Scene:
    """One drawing: its items in the order they are drawn, and in words what it shows."""

    width: float
    height: float
    items: Sequence[Item]
    title: str
    caption: str = ""  # how to read it; one or two sentences


@dataclass(frozen=True)
class Frame:
    """One of several drawings between which a reader of the HTML page chooses, such as one a head."""

    name: str
    draw: Callable[[], Scene]


@dataclass(frozen=True)
class Figure:
    """What a view returns: one drawing, or several; `chosen` is the one that a picture shows."""

    frames: Sequence[Frame]
    choice: str = ""  # what the frames differ in: "head", "step", "layer"
    chosen: int = 0
    notes: Sequence[str] = field(default_factory=tuple)  # remarks for the terminal

    @classmethod
    def of(cls, scene: Scene, *notes: str) -> "Figure":
        """A figure of one drawing."""
        return cls([Frame(scene.title, lambda: scene)], notes=notes)

    @property
    def scene(self) -> Scene:
        return self.frames[self.chosen].draw()

    def save(self, path: Path | str) -> None:
        """Write it to a .png, .svg, .pdf or .html file."""
        from regard.inspection.drawing.files import save_figure

        save_figure(self, Path(path))

    def _repr_html_(self) -> str:
        """Shows itself in a notebook, without a network."""
        from regard.inspection.drawing.html import fragment

        return fragment(self)


def printable(text: str) -> str:
    """Text with control characters, lone surrogates and the like shown as a symbol, since no format can hold them."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def in_drawing(items: Sequence[Item]) -> list[Item]:
    """The items, whose text is only a label of what they draw."""
    return [replace(item, in_drawing=True) if isinstance(item, Text) else item for item in items]


def heading(title: str, caption: str = "") -> list[Item]:
    """The two lines at the top of a scene; they take 34 points."""
    found: list[Item] = [Text(8, 12, title, size=11, bold=True)]
    if caption:
        found.append(Text(8, 26, caption, size=8, color=FAINT))
    return found
