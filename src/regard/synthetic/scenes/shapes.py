"""Masks of the shapes and of their textures."""

from collections.abc import Callable
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt

Grid = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def mask(shape: str, extent: int) -> Mask:
    """The pixels of a shape in a square of `extent` pixels, an odd number; it touches all four sides."""
    assert extent % 2 == 1, "a centered tip needs a center pixel"
    centers = (np.arange(extent) - extent // 2) / (extent / 2)
    return _INSIDE[shape](centers[None, :], centers[:, None])


def darkened(shape: str, extent: int, texture: str, grain: int) -> Mask:
    """The pixels a texture darkens; its stripes and dots are `grain` pixels wide."""
    across, down = np.arange(extent)[None, :], np.arange(extent)[:, None]
    if texture == "striped":
        pattern = (across + down) // grain % 2 == 1
    elif texture == "dotted":
        start = (extent // 2 - grain // 2) % (2 * grain)  # a dot in the center
        pattern = ((across - start) // grain % 2 == 0) & ((down - start) // grain % 2 == 0)
    else:
        pattern = np.zeros((extent, extent), bool)
    return np.asarray(pattern & mask(shape, extent))


# Each returns which points lie inside, with `across` and `down` from -1 to 1.


def _circle(across: Grid, down: Grid) -> Mask:
    return across**2 + down**2 <= 1


def _square(across: Grid, down: Grid) -> Mask:
    return np.maximum(abs(across), abs(down)) <= 1


def _triangle(across: Grid, down: Grid) -> Mask:
    return abs(across) <= (down + 1) / 2


def _star(across: Grid, down: Grid) -> Mask:
    """A pentagram: the points inside four of its five lines, which are moved out a little to blunt the tips."""
    right, low = across * sin(2 * pi / 5), (down * (1 + cos(pi / 5)) - (1 - cos(pi / 5))) / 2
    turns = [2 * pi * k / 5 for k in range(5)]
    within = sum((right * sin(turn) - low * cos(turn) <= 0.36).astype(int) for turn in turns)
    return np.asarray(within >= 4)


def _cross(across: Grid, down: Grid) -> Mask:
    return np.minimum(abs(across), abs(down)) <= 0.32


def _ring(across: Grid, down: Grid) -> Mask:
    return _circle(across, down) & (across**2 + down**2 > 0.2)


def _diamond(across: Grid, down: Grid) -> Mask:
    return abs(across) + abs(down) <= 1


def _heart(across: Grid, down: Grid) -> Mask:
    humps = (abs(across) - 0.5) ** 2 + (down + 0.5) ** 2 <= 0.25
    return humps | ((down >= -0.5) & (abs(across) <= (1 - down) / 1.5))


_INSIDE: dict[str, Callable[[Grid, Grid], Mask]] = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "star": _star,
    "cross": _cross,
    "ring": _ring,
    "diamond": _diamond,
    "heart": _heart,
}
