"""Curves over an x axis and a y axis, linear or logarithmic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regard.inspection.drawing.colors import FAINT, INK, QUERY, RULE
from regard.inspection.drawing.layout import GAP, Block, widest
from regard.inspection.drawing.scene import Item, Line, Rectangle, Text, in_drawing
from regard.inspection.maps.labels import text_width

DOT = 3.0
TICK = 3.0
FOOT = 30.0  # the numbers and the name below a chart
HEAD = 16.0  # the name above


@dataclass(frozen=True)
class Axis:
    """The numbers along one side, from the first tick to the last."""

    name: str
    ticks: Sequence[float]
    logarithmic: bool = False
    labels: Sequence[str] = ()  # of the ticks, if they are not the numbers

    def share(self, value: float) -> float:
        """Where a value stands: 0 at the first tick, 1 at the last."""
        low, high, at = (math.log(one) if self.logarithmic else one for one in (self.ticks[0], self.ticks[-1], value))
        return (at - low) / (high - low)

    def texts(self) -> list[str]:
        return list(self.labels) or [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in self.ticks]


@dataclass(frozen=True)
class Curve:
    """Points of one color; its name stands to the right of its last point."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str = QUERY
    dots: bool = False  # one for each point, with its numbers as title


@dataclass(frozen=True)
class Mark:
    """A dashed line across the chart at one x, with a name at its foot."""

    x: float
    name: str


def chart(
    x: float,
    y: float,
    size: tuple[float, float],
    across: Axis,
    up: Axis,
    curves: Sequence[Curve],
    marks: Sequence[Mark] = (),
) -> Block:
    """Curves between two axes; `size` is the room of the curves alone."""
    left, top, (wide, high) = x + widest(up.texts(), 8) + 2 * GAP, y + HEAD, size

    def place(one: float, other: float) -> tuple[float, float]:
        return left + wide * across.share(one), top + high * (1 - up.share(other))

    items: list[Item] = [Text(x, y + HEAD / 2 - GAP, up.name, 8, INK), *_axes(left, top, size, across, up)]
    for mark in marks:
        (at, _) = place(mark.x, up.ticks[0])
        items += [
            Line([(at, top), (at, top + high)], FAINT, 0.8, dashed=True),
            Text(at + GAP, top + high - 7, mark.name, 8),
        ]
    for curve in curves:
        items += _curve(curve, [place(*point) for point in zip(curve.x, curve.y, strict=True)])
    items += _names(curves, [place(curve.x[-1], curve.y[-1]) for curve in curves])
    named = max((text_width(curve.name, 8) for curve in curves), default=0.0)
    return Block(in_drawing(items), left + wide + GAP + named - x, HEAD + high + FOOT)


def _axes(left: float, top: float, size: tuple[float, float], across: Axis, up: Axis) -> list[Item]:
    """Both lines, the ticks with their numbers, and the name below."""
    wide, high = size
    bottom = top + high
    items: list[Item] = [Line([(left, top), (left, bottom), (left + wide, bottom)], FAINT, 0.8)]
    for tick, text in zip(across.ticks, across.texts(), strict=True):
        at = left + wide * across.share(tick)
        items.append(Line([(at, bottom), (at, bottom + TICK)], FAINT, 0.8))
        items.append(Text(at, bottom + TICK + 6, text, 8, FAINT, "center"))
    for tick, text in zip(up.ticks, up.texts(), strict=True):
        at = bottom - high * up.share(tick)
        if tick != up.ticks[0]:
            items.append(Line([(left, at), (left + wide, at)], RULE, 0.5))
        items.append(Text(left - GAP, at, text, 8, FAINT, "right"))
    items.append(Text(left + wide / 2, bottom + FOOT - 7, across.name, 8, INK, "center"))
    return items


def _curve(curve: Curve, points: Sequence[tuple[float, float]]) -> list[Item]:
    """The line and its dots."""
    items: list[Item] = [Line(points, curve.color, 1.6, title=curve.name)]
    if curve.dots:
        for (at, down), one, other in zip(points, curve.x, curve.y, strict=True):
            title = f"{curve.name}: {one:g} → {other:.6g}"
            box = (at - DOT / 2, down - DOT / 2, DOT, DOT)
            items.append(Rectangle(*box, curve.color, None, radius=DOT / 2, title=title))
    return items


def _names(curves: Sequence[Curve], ends: Sequence[tuple[float, float]]) -> list[Item]:
    """The name of each curve at its end; names that would overlap are moved down."""
    items: list[Item] = []
    free = -math.inf
    for curve, (x, y) in sorted(zip(curves, ends, strict=True), key=lambda one: one[1][1]):
        y = max(y, free)
        items.append(Text(x + GAP, y, curve.name, 8, curve.color))
        free = y + 10
    return items
