"""The regions of pictures: what each shows and where it lies, cut out of pixels.

The first region is always the whole picture (Lu 2019, 3.1). A box is five numbers: left, top, right and bottom as
shares of the picture from 0 to 1, and the share of its area. All zeros: it is padding.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

WHOLE = (0.0, 0.0, 1.0, 1.0)
UNKNOWN = -100  # the class of a region of which none is known, such as the whole picture
CENTER, SPREAD = 127.5, 64.0  # of pixels, so that a model reads numbers of about -2 to 2


class PictureRegions(NamedTuple):
    """Those of one picture."""

    features: np.ndarray  # (R, F) float32; or uint8: pixels
    boxes: np.ndarray  # (R, 5) float32
    classes: np.ndarray | None = None  # (R,) of which kind each is; UNKNOWN: none is known


class RegionBatch(NamedTuple):
    """Those of several pictures side by side."""

    features: Tensor  # (B, R, F)
    boxes: Tensor  # (B, R, 5); all zeros: padding
    classes: Tensor | None  # (B, R)


def geometry(boxes: np.ndarray | Sequence[Sequence[float]], width: float = 1.0, height: float = 1.0) -> np.ndarray:
    """Boxes (N, 4) of a picture of this size as five numbers each, (N, 5)."""
    shares = np.asarray(boxes, np.float32).reshape(-1, 4) / np.array([width, height] * 2, np.float32)
    area = (shares[:, 2] - shares[:, 0]) * (shares[:, 3] - shares[:, 1])
    return np.concatenate([shares, area[:, None]], axis=1, dtype=np.float32)


def boxed(
    pixels: np.ndarray, boxes: Sequence[Sequence[float]], patch: int, classes: Sequence[int] | None = None
) -> PictureRegions:
    """The whole picture and these boxes of it, (left, top, right, bottom) in pixels, each brought to patch × patch."""
    height, width, _ = pixels.shape
    picture = Image.fromarray(pixels)
    every = [(0.0, 0.0, float(width), float(height)), *boxes]
    cut = [_cut(picture, box).resize((patch, patch), Image.Resampling.BILINEAR) for box in every]
    features = np.stack([np.asarray(one).reshape(-1) for one in cut])
    kinds = None if classes is None else np.array([UNKNOWN, *classes], np.int64)
    return PictureRegions(features, geometry(every, width, height), kinds)


def _cut(picture: Image.Image, box: Sequence[float]) -> Image.Image:
    """All pixels that a box touches. (Resizing a part of a picture would also look at what lies beside it.)"""
    left, top, right, bottom = (round(number, 6) for number in box)  # a third of 9, three times, is 9
    return picture.crop((math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)))


def grid(pixels: np.ndarray, cells: int, patch: int) -> PictureRegions:
    """The whole picture, and cells × cells of equal size, row by row."""
    height, width, _ = pixels.shape
    down, across = height / cells, width / cells
    places = [(row, column) for row in range(cells) for column in range(cells)]
    boxes = [(c * across, r * down, (c + 1) * across, (r + 1) * down) for r, c in places]
    return boxed(pixels, boxes, patch)


def look(pixels: np.ndarray, boxes: Sequence[Sequence[float]] | None, *, cells: int, patch: int) -> PictureRegions:
    """The regions of a picture as a model sees it: its cells, or the boxes given."""
    return grid(pixels, cells, patch) if cells else boxed(pixels, boxes or (), patch)


class Regions:
    """The regions of many pictures, of each as many as it has, in three arrays."""

    def __init__(self, pictures: Iterable[PictureRegions]) -> None:
        some = list(pictures)
        assert some, "no pictures"
        self.counts = np.array([len(one.features) for one in some], np.int64)
        self._starts = np.cumsum(self.counts) - self.counts
        self._features = np.concatenate([one.features for one in some])
        self._boxes = np.concatenate([one.boxes for one in some])
        self._classes = None if some[0].classes is None else np.concatenate([one.classes for one in some])

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, number: int) -> PictureRegions:
        some = slice(self._starts[number], self._starts[number] + self.counts[number])
        classes = None if self._classes is None else self._classes[some]
        return PictureRegions(self._features[some], self._boxes[some], classes)

    @property
    def width(self) -> int:
        """F, how many features a region has."""
        return int(self._features.shape[1])

    def collate(self, numbers: np.ndarray | Sequence[int]) -> RegionBatch:
        """These pictures side by side, padded behind the last region of each."""
        numbers = np.asarray(numbers)
        counts = self.counts[numbers]
        places = np.arange(counts.max())
        real = places < counts[:, None]  # (B, R)
        flat = self._starts[numbers, None] + np.minimum(places, counts[:, None] - 1)
        boxes = np.where(real[:, :, None], self._boxes[flat], np.float32(0))
        classes = None if self._classes is None else torch.from_numpy(np.where(real, self._classes[flat], UNKNOWN))
        return RegionBatch(as_numbers(self._features[flat]), torch.from_numpy(boxes), classes)


def side_by_side(pictures: Sequence[PictureRegions]) -> RegionBatch:
    """Several pictures as a batch."""
    return Regions(pictures).collate(np.arange(len(pictures)))


def as_numbers(features: np.ndarray) -> Tensor:
    """Features as a model reads them: pixels are centered and scaled, other numbers stay."""
    found = torch.from_numpy(np.asarray(features, np.float32))
    return (found - CENTER) / SPREAD if features.dtype == np.uint8 else found
