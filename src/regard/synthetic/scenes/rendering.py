"""Render the things of a scene on their background, with numpy only."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128

import numpy as np
import numpy.typing as npt

from regard.synthetic.scenes.objects import Thing
from regard.synthetic.scenes.shapes import Mask, darkened, mask

Pixels = npt.NDArray[np.uint8]
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
}  # none is dark: a dark stripe would look like a gap
SLOPE = 14  # brightness change of the background from its center to its edge
NOISE = 8  # amplitude of its noise
DARK = 0.3  # brightness of the dark parts of a texture


def paint(things: Sequence[Thing], background: str, side: int, key: str) -> Pixels:
    """The image, (side, side, 3). Slope and noise of the background are pure functions of the key."""
    picture = _background(background, side, key)
    for thing in things:
        left, top, right, bottom = thing.box
        painted, where = _stamp(thing.shape, thing.color, thing.texture, right - left, grain(side))
        np.copyto(picture[top:bottom, left:right], painted, where=where)
    return picture


def grain(side: int) -> int:
    """Width of a stripe or a dot in pixels."""
    return side // 32


@lru_cache(maxsize=1024)
def _stamp(shape: str, color: str, texture: str, extent: int, grain: int) -> tuple[Pixels, Mask]:
    """A painted thing and its mask, both (extent, extent, 3); copying the cached stamp is ten times as fast."""
    paint = np.array(PAINTS[color])
    dark = darkened(shape, extent, texture, grain)
    painted = np.where(dark[:, :, None], paint * DARK, paint).astype(np.uint8)
    return painted, np.repeat(mask(shape, extent)[:, :, None], 3, axis=2)


def _background(name: str, side: int, key: str) -> Pixels:
    chance = np.frombuffer(shake_128(key.encode()).digest(side * side + 1), np.uint8)
    noise = np.repeat(chance[1:] % (2 * NOISE + 1), 3).reshape(side, side, 3)
    return _shaded(name, int(chance[0]) % 8, side) + noise


@lru_cache(maxsize=64)
def _shaded(name: str, direction: int, side: int) -> Pixels:
    """A background that gets lighter toward one of eight directions, less the amplitude of the noise."""
    east, south = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))[direction]
    line = np.linspace(-1, 1, side)
    plane = (east * line[None, :] + south * line[:, None]) / (abs(east) + abs(south))
    return np.asarray(SLOPE * plane[:, :, None] + np.array(BACKGROUNDS[name]) - NOISE).astype(np.uint8)
