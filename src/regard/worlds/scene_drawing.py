"""Paints the things of a scene on their background, with no more than numpy."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128

import numpy as np
import numpy.typing as npt

from regard.worlds.scene_shapes import darkened, mask
from regard.worlds.scene_things import Thing

Pixels = npt.NDArray[np.uint8]
Shade = npt.NDArray[np.int16]
RGB = tuple[int, int, int]

PAINTS: dict[str, RGB] = {
    "red": (222, 32, 32),
    "orange": (255, 140, 0),
    "yellow": (250, 232, 40),
    "green": (30, 160, 50),
    "cyan": (50, 215, 230),
    "blue": (30, 70, 225),
    "purple": (135, 40, 175),
    "pink": (255, 110, 185),
}
BACKGROUNDS: dict[str, RGB] = {
    "slate": (104, 108, 114),
    "stone": (150, 147, 140),
    "mist": (188, 193, 198),
    "paper": (226, 224, 216),
}  # none is dark: a darkened stripe would look like a gap
SLOPE = 14  # a background grows so much darker or lighter from its middle to its edge
NOISE = 8  # and each pixel of it differs by up to so much
DARK = 0.3  # what a texture leaves of a color


def paint(things: Sequence[Thing], background: str, side: int, key: str) -> Pixels:
    """The picture, (side, side, 3). The slope and the noise of the background are pure functions of the key."""
    picture = _background(background, side, key)
    for thing in things:
        left, top, right, bottom = thing.box
        place = picture[top:bottom, left:right]
        extent = right - left
        place[mask(thing.shape, extent)] = _paint(thing.color, 1.0)
        if thing.texture != "plain":
            place[darkened(thing.shape, extent, thing.texture, grain(side))] = _paint(thing.color, DARK)
    return picture


def grain(side: int) -> int:
    """How many pixels a stripe or a dot is wide."""
    return side // 32


def _background(name: str, side: int, key: str) -> Pixels:
    drawn = np.frombuffer(shake_128(key.encode()).digest(side * side + 1), np.uint8)
    noise = (drawn[1:] % (2 * NOISE + 1)).astype(np.int16).reshape(side, side) - NOISE
    shade = noise + _slope(int(drawn[0]) % 8, side)
    return (shade[:, :, None] + _base(name)).astype(np.uint8)


@lru_cache(maxsize=64)
def _slope(direction: int, side: int) -> Shade:
    """A plane that rises toward one of the eight winds."""
    east, south = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))[direction]
    line = np.linspace(-1, 1, side)
    plane = east * line[None, :] + south * line[:, None]
    return np.asarray(SLOPE * plane / (abs(east) + abs(south))).astype(np.int16)


@lru_cache(maxsize=8)
def _base(name: str) -> Shade:
    return np.array(BACKGROUNDS[name], np.int16)


@lru_cache(maxsize=32)
def _paint(color: str, light: float) -> Pixels:
    return (np.array(PAINTS[color]) * light).astype(np.uint8)
