"""The block diagram of a model: its parts with shapes and numbers of parameters, repeated blocks drawn once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT, IMAGE, INK, KEY, MASKED, QUERY, VALUE
from regard.inspection.drawing.layout import TOP, heading_width, widest
from regard.inspection.drawing.scene import Figure, Item, Line, Rectangle, Scene, Text, heading
from regard.inspection.parts import Part, Side, parts_of
from regard.inspection.trace import TraceInfo
from regard.inspection.views.base import Choices, Subject, View

COLUMN = 250.0  # the width of a column
BETWEEN = 36.0  # two columns
ROW = 17.0
GAP = 12.0  # between boxes, for the arrow
PAD = 7.0  # inside the frame of a stack
HEAD = 14.0  # the name of a stack
CAPTION = "From the input at the bottom up: each part with the shape of its matrix and its number of parameters."
# a part of the name of a class -> its color
COLORS = {
    "Attention": QUERY,
    "Bridge": QUERY,
    "Context": QUERY,
    "Embedding": KEY,
    "Position": KEY,
    "Rotary": KEY,
    "FeedForward": VALUE,
    "GRU": IMAGE,
    "LSTM": IMAGE,
    "Recurrent": IMAGE,
    "Convolution": IMAGE,
}
SIDES: tuple[Side, ...] = ("both", "left", "right")
RECURRENT = ("GRU", "LSTM", "RecurrentLayer")


def draw(subject: Subject, choices: Choices) -> Figure:
    """One drawing; needs no values, so a trace of any input will do."""
    info = subject.trace.info
    parts = parts_of(info)
    if not parts or info.modules[0].path:
        raise InputError("this trace does not list the modules of its model; record it again with `regard trace`")
    num_columns = 1 if all(part.side == "left" for part in parts) else 2
    total = info.modules[0].parameters
    title = f"{info.kind}: {total:,} parameters"
    items = _Diagram(info, num_columns).draw(parts)
    height = max(item.y + item.height for item in items if isinstance(item, Rectangle))  # from the bottom
    width = max(16 + num_columns * COLUMN + (num_columns - 1) * BETWEEN, heading_width(title, CAPTION))
    bottom = TOP + height + 26
    drawn: list[Item] = [*heading(title, CAPTION), *(_turned(item, bottom - 18) for item in items)]
    return Figure.of(Scene(width, bottom, drawn, title, CAPTION))


class _Diagram:
    """Places boxes from the bottom up, y = 0 being the bottom; `_turned` makes them a scene."""

    def __init__(self, info: TraceInfo, num_columns: int) -> None:
        self.num_columns = num_columns
        self.inputs = _inputs(info, num_columns)
        self.ends: dict[Side, float] = {"left": 0.0, "right": 0.0}
        self.is_after_stack = {"left": True, "right": True}  # or after the input
        self.has_memory = info.interface in ("seq2seq", "captioner")
        self.items: list[Item] = []
        self.first_right: float | None = None
        self.shared = self.rank = 0  # see _enter

    def draw(self, parts: Sequence[Part]) -> list[Item]:
        for side, text in self.inputs.items():
            x, width = self._column(side)
            self.items.append(Text(x + width / 2, -9, text, color=INK, anchor="center"))
        for part in parts:
            self._place(part)
        if self.has_memory and self.first_right is not None:
            self._memory_arrow()
        return self.items

    def _enter(self, side: Side) -> None:
        """Order the texts that follow for a terminal, from the bottom up: what both columns share, left, then right."""
        if side == "both":
            self.shared += len(SIDES)
        self.rank = self.shared + SIDES.index(side)

    def _write(self, x: float, y: float, text: str, size: float = 9, color: str = INK, **style: Any) -> None:
        self.items.append(Text(x, y, text, size, color, column=-self.rank, **style))

    def _column(self, side: Side) -> tuple[float, float]:
        """Where a column begins, and its width."""
        both = self.num_columns * COLUMN + (self.num_columns - 1) * BETWEEN
        return (8 + (COLUMN + BETWEEN) * (side == "right"), COLUMN) if side != "both" else (8, both)

    def _place(self, part: Part) -> None:
        self._enter(part.side)
        x, width = self._column(part.side)
        sides: list[Side] = ["left", "right"] if part.side == "both" else [part.side]
        is_stack = bool(part.inside)
        has_arrow = is_stack or any(self.is_after_stack[side] for side in sides)
        y = max(self.ends[side] for side in sides) + (GAP if has_arrow else 4)
        for side in sides[: self.num_columns if has_arrow else 0]:
            left, wide = self._column(side)
            self.items.append(Line([(left + wide / 2, self.ends[side]), (left + wide / 2, y)], FAINT, arrow=True))
        height = self._stack(part, x, y, width) if is_stack else self._box(part, x, y, width)
        if part.side == "right" and self.first_right is None and (part.inside or part.count > 1):
            self.first_right = y + height / 2
        for side in sides:
            self.ends[side], self.is_after_stack[side] = y + height, is_stack

    def _box(self, part: Part, x: float, y: float, width: float) -> float:
        """A box of one row: name and class to the left, shape and parameters to the right; returns its height."""
        module = part.module
        color = next((shade for word, shade in COLORS.items() if word in module.kind), MASKED)
        title = f"{module.path}: {part.parameters}"
        self.items.append(Rectangle(x, y, width, ROW, color, None, opacity=0.16, radius=3, title=title))
        self.items.append(Rectangle(x, y, width, ROW, None, color, radius=3))
        name = part.name if part.count == 1 else f"{part.name} × {part.count}"
        self._write(x + 6, y + ROW / 2, name, 8)
        self._write(x + 12 + widest([name], 8), y + ROW / 2, module.kind, 7, FAINT)
        shape = " × ".join(map(str, module.shape))
        numbers = f"{shape}   {part.parameters:,}" if shape else f"{part.parameters:,}"
        self._write(x + width - 6, y + ROW / 2, numbers, 7, FAINT, anchor="right")
        return ROW

    def _stack(self, part: Part, x: float, y: float, width: float) -> float:
        """A frame around the parts of one block, with × N; returns its height."""
        is_wide = part.side == "both" and any(one.side == "right" for one in part.inside)
        ends: dict[Side, float] = {"left": y + PAD, "right": y + PAD}
        for one in part.inside:
            left, wide = self._column(one.side) if is_wide and one.side != "both" else (x, width)
            side = one.side if is_wide else "left"
            at = ends.get(side, y + PAD)
            if is_wide:
                self._enter(one.side)
            self._box(one, left + PAD, at, wide - 2 * PAD)
            ends[side] = at + ROW + 4
        if is_wide:
            self._enter("both")
        height = max(ends.values()) - y + HEAD
        self.items.append(Rectangle(x, y, width, height, None, INK, 1.1, radius=5))
        name, top = part.name, y + height - HEAD / 2 - 1
        self._write(x + PAD, top, f"{name}: {part.module.kind}", 8, bold=True)
        if any(one.module.kind in RECURRENT for one in (part, *part.inside)):
            self._write(x + width / 2 + 40, top, "token by token", 7, IMAGE, anchor="center")
        count = f"× {part.count}   {part.parameters:,}" if part.count > 1 else f"{part.parameters:,}"
        title = f"{part.module.path}: {part.parameters}"
        self._write(x + width - PAD, top, count, 8, anchor="right", bold=part.count > 1, title=title)
        return height

    def _memory_arrow(self) -> None:
        """From the top of the encoder to the first stack of the decoder."""
        assert self.first_right is not None
        top = self.ends["left"] + GAP
        x, middle = 8 + COLUMN / 2, 8 + COLUMN + BETWEEN / 2
        points = [(x, self.ends["left"]), (x, top), (middle, top), (middle, self.first_right)]
        self.items.append(Line([*points, (8 + COLUMN + BETWEEN, self.first_right)], QUERY, 1.2, arrow=True))
        self.items.append(Rectangle(x, top, 0.1, 0.1, None, None))  # the arrow counts in the height


def _inputs(info: TraceInfo, num_columns: int) -> dict[Side, str]:
    """What enters each column."""
    names = list(info.axes)
    told = {name: f"{name}: {_counted(info, name)}" for name in names}
    if num_columns == 1 or len(names) == 1:
        return {"left": told[names[0]]}
    return {"left": told[names[0]], "right": told[names[1]]}


def _counted(info: TraceInfo, name: str) -> str:
    axis = info.axes[name]
    if axis.grid is not None:
        return f"{axis.grid[0]} × {axis.grid[1]} cells"
    return f"{len(axis.tokens)} {'regions' if axis.boxes else 'tokens'}"


def _turned(item: Item, bottom: float) -> Item:
    """An item whose y was from the bottom, in a scene, whose y is from the top."""
    if isinstance(item, Rectangle):
        return replace(item, y=bottom - item.y - item.height)
    if isinstance(item, Line):
        return replace(item, points=[(x, bottom - y) for x, y in item.points])
    assert isinstance(item, Text)
    return replace(item, y=bottom - item.y)


VIEW = View("architecture", "the block diagram, with shapes and numbers of parameters", draw, (), static=True)
