"""Place the labels of points so that they do not overlap: greedily, in the order given."""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

POINT_RADIUS = 5.0  # kept free of labels
RINGS = (0.0, 12.0, 24.0, 38.0, 54.0, 72.0, 92.0, 116.0, 144.0)  # distances of a label from its nearest position
DIRECTIONS = 24  # tried on the farther rings

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Label:
    """The label of a point: its anchor, which end is anchored, and whether a line connects it to its point."""

    point: int
    x: float
    y: float
    end: Literal["left", "center", "right"]
    box: Box
    away: bool


def place_labels(
    points: np.ndarray, words: Sequence[str], chosen: Iterable[int], *, frame: tuple[float, float], size: float
) -> list[Label]:
    """Labels for the chosen points (N, 2) inside a frame, in a font of this size. Labels that do not fit are left out.

    They overlap no other label and no chosen point.
    """
    chosen = list(chosen)
    taken = [
        (x - POINT_RADIUS, y - POINT_RADIUS, x + POINT_RADIUS, y + POINT_RADIUS) for x, y in points[chosen].tolist()
    ]
    found = []
    for own, number in enumerate(chosen):
        x, y = map(float, points[number])
        here = np.array(taken)
        others = np.delete(here, own, axis=0)  # the line of a label starts at its own point
        for label in _candidates(number, x, y, text_width(words[number], size), size):
            line = _line_boxes(x, y, label)
            clash = overlap(np.array([label.box]), here).any() or (line and overlap(np.array(line), others).any())
            if _inside(label.box, frame) and not clash:
                taken += [label.box, *line]
                found.append(label)
                break
    return found


def overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each of the boxes (M, 4) overlaps each of the others (N, 4): (M, N)."""
    one, other = boxes[:, None], others[None]
    return np.all((one[..., :2] < other[..., 2:]) & (other[..., :2] < one[..., 2:]), axis=-1)


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in a sans-serif font of this size."""
    return size * sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.62 for letter in text)


def _candidates(number: int, x: float, y: float, wide: float, size: float) -> Iterator[Label]:
    """Candidate positions: right, left, above, below; then around the point at growing distances."""
    gap, half = POINT_RADIUS + 2, 0.55 * size
    directions = [(1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 1.0)]
    directions += [
        (math.cos(angle), math.sin(angle))
        for angle in (2 * math.pi * (k + 0.5) / DIRECTIONS for k in range(DIRECTIONS))
    ]
    for ring in RINGS:
        for across, down in directions:
            at, middle = x + across * (gap + ring), y + down * (gap + ring)
            if abs(across) < 0.3:  # above or below the point, and not beside it
                middle += math.copysign(half, down)
                box = (at - wide / 2, middle - half, at + wide / 2, middle + half)
                yield Label(number, at, middle, "center", box, ring > 0)
            elif across > 0:
                yield Label(number, at, middle, "left", (at, middle - half, at + wide, middle + half), ring > 0)
            else:
                yield Label(number, at, middle, "right", (at - wide, middle - half, at, middle + half), ring > 0)


def line_end(x: float, y: float, label: Label) -> tuple[float, float]:
    """Where a line from a point meets its label: the nearest point of its box."""
    left, top, right, bottom = label.box
    return min(max(x, left), right), min(max(y, top), bottom)


def _line_boxes(x: float, y: float, label: Label) -> list[Box]:
    """The connecting line, if there is one, as small boxes that nothing may overlap."""
    if not label.away:
        return []
    to = line_end(x, y, label)
    middles = [(x + (to[0] - x) * part, y + (to[1] - y) * part) for part in (0.35, 0.6, 0.85)]
    return [(across - 1, down - 1, across + 1, down + 1) for across, down in middles]


def _inside(box: Box, frame: tuple[float, float]) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= frame[0] and box[3] <= frame[1]
