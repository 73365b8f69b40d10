"""Labels beside points so that they do not lie on each other: greedy, the first come first."""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

DOT = 5.0  # the radius that a point keeps free
RINGS = (0.0, 12.0, 24.0, 38.0, 54.0, 72.0, 92.0, 116.0, 144.0)  # how far from the nearest place a label may go
WAYS = 24  # directions of the far rings

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Label:
    """The label of a point: where it is held, by which end, at which height; and if it needs a line to its point."""

    point: int
    x: float
    y: float
    end: Literal["left", "center", "right"]
    box: Box
    away: bool


def place_labels(
    points: np.ndarray, words: Sequence[str], chosen: Iterable[int], *, frame: tuple[float, float], size: float
) -> list[Label]:
    """Labels for the chosen points (N, 2) inside a frame, letters `size` high; one for which there is no room is none.

    They lie on no other label and on no chosen point.
    """
    chosen = list(chosen)
    taken = [(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points[chosen].tolist()]
    found = []
    for own, number in enumerate(chosen):
        x, y = map(float, points[number])
        here = np.array(taken)
        others = np.delete(here, own, axis=0)  # the line of a label begins at its own point
        for label in _places(number, x, y, text_width(words[number], size), size):
            line = _along(x, y, label)
            clash = overlap(np.array([label.box]), here).any() or (line and overlap(np.array(line), others).any())
            if _inside(label.box, frame) and not clash:
                taken += [label.box, *line]
                found.append(label)
                break
    return found


def overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of the boxes (M, 4) lies on which of the others (N, 4): (M, N)."""
    one, other = boxes[:, None], others[None]
    return np.all((one[..., :2] < other[..., 2:]) & (other[..., :2] < one[..., 2:]), axis=-1)


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif letter of this size."""
    return size * sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.62 for letter in text)


def _places(number: int, x: float, y: float, wide: float, size: float) -> Iterator[Label]:
    """The places to try: right, left, above, below; then around the point, farther and farther out."""
    gap, half = DOT + 2, 0.55 * size
    ways = [(1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 1.0)]
    ways += [(math.cos(angle), math.sin(angle)) for angle in (2 * math.pi * (k + 0.5) / WAYS for k in range(WAYS))]
    for ring in RINGS:
        for across, down in ways:
            at, middle = x + across * (gap + ring), y + down * (gap + ring)
            if abs(across) < 0.3:  # above or below, and no part of it beside the point
                middle += math.copysign(half, down)
                box = (at - wide / 2, middle - half, at + wide / 2, middle + half)
                yield Label(number, at, middle, "center", box, ring > 0)
            elif across > 0:
                yield Label(number, at, middle, "left", (at, middle - half, at + wide, middle + half), ring > 0)
            else:
                yield Label(number, at, middle, "right", (at - wide, middle - half, at, middle + half), ring > 0)


def line_end(x: float, y: float, label: Label) -> tuple[float, float]:
    """Where a line from a point meets its label: the nearest place of its box."""
    left, top, right, bottom = label.box
    return min(max(x, left), right), min(max(y, top), bottom)


def _along(x: float, y: float, label: Label) -> list[Box]:
    """The line, if there is one, as small boxes: it should cross nothing, and nothing else come to lie on it."""
    if not label.away:
        return []
    to = line_end(x, y, label)
    middles = [(x + (to[0] - x) * part, y + (to[1] - y) * part) for part in (0.35, 0.6, 0.85)]
    return [(across - 1, down - 1, across + 1, down + 1) for across, down in middles]


def _inside(box: Box, frame: tuple[float, float]) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= frame[0] and box[3] <= frame[1]
