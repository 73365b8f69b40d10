"""Pictures of any size as squares of one size, and where their boxes come to lie."""

from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

Crop = Literal["center", "squash", "pad"]
PADDING = (124, 116, 104)  # about the mean color that `normalize` takes away, so that it becomes about zero


class Framing(NamedTuple):
    """Which part of a picture goes where in the prepared square: (left, top, right, bottom), both in pixels."""

    source: tuple[int, int, int, int]
    target: tuple[int, int, int, int]

    def boxes(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes (N, 4) of the picture as boxes of the square, cut at the border of what is seen.

        A box that lies wholly outside becomes one without area.
        """
        left, top, right, bottom = self.target
        return self._moved(boxes, self.source, self.target).clip((left, top) * 2, (right, bottom) * 2)

    def boxes_back(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes (N, 4) of the square as boxes of the picture, to draw there."""
        left, top, right, bottom = self.source
        return self._moved(boxes, self.target, self.source).clip((left, top) * 2, (right, bottom) * 2)

    @staticmethod
    def _moved(boxes: np.ndarray, here: tuple[int, ...], there: tuple[int, ...]) -> np.ndarray:
        start, to = np.array(here[:2] * 2), np.array(there[:2] * 2)
        scale = (np.array(there[2:] * 2) - to) / (np.array(here[2:] * 2) - start)
        return (np.asarray(boxes, np.float64).reshape(-1, 4) - start) * scale + to


def framing(width: int, height: int, side: int, crop: Crop) -> Framing:
    """How a picture of this size is brought to `side` × `side`.

    center: the largest square in its middle; squash: all of it, stretched; pad: all of it, with borders.
    """
    whole, square = (0, 0, width, height), (0, 0, side, side)
    if crop == "squash":
        return Framing(whole, square)
    if crop == "center":
        short = min(width, height)
        left, top = (width - short) // 2, (height - short) // 2
        return Framing((left, top, left + short, top + short), square)
    assert crop == "pad", crop
    scale = side / max(width, height)
    wide, high = max(1, round(width * scale)), max(1, round(height * scale))
    left, top = (side - wide) // 2, (side - high) // 2
    return Framing(whole, (left, top, left + wide, top + high))


def prepare(picture: Image.Image, side: int, *, crop: Crop = "center") -> np.ndarray:
    """An RGB picture as pixels (side, side, 3) of uint8, resized as `framing` says."""
    assert picture.mode == "RGB", picture.mode
    source, target = framing(*picture.size, side, crop)
    left, top, right, bottom = target
    # The part is cut out while resizing: a picture of one row would else be blown up before it is cut.
    part = picture.resize((right - left, bottom - top), Image.Resampling.BICUBIC, box=source)
    pixels = np.full((side, side, 3), PADDING, np.uint8)
    pixels[top:bottom, left:right] = np.asarray(part)
    return pixels
