"""Image regions for vision-language models: features and boxes, cropped from pixels or from a detector.

The first region is always the whole image (Lu 2019, 3.1). A box is five numbers: left, top, right and bottom as
fractions of the image from 0 to 1, and the fraction of its area. All zeros mark padding.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

WHOLE_IMAGE = (0.0, 0.0, 1.0, 1.0)
UNKNOWN_CLASS = -100  # class of a region without one, such as the whole image
PIXEL_MEAN, PIXEL_SCALE = 127.5, 64.0  # normalize pixels to about -2 to 2


class ImageRegions(NamedTuple):
    """The R regions of one image."""

    features: np.ndarray  # (R, F) float32, or uint8 pixels
    boxes: np.ndarray  # (R, 5) float32
    classes: np.ndarray | None = None  # (R,); UNKNOWN_CLASS where there is none


class RegionBatch(NamedTuple):
    """The regions of several images, padded."""

    features: Tensor  # (B, R, F)
    boxes: Tensor  # (B, R, 5); all zeros mark padding
    classes: Tensor | None  # (B, R)


def normalize_boxes(
    boxes: np.ndarray | Sequence[Sequence[float]], width: float = 1.0, height: float = 1.0
) -> np.ndarray:
    """Boxes (N, 4) of an image of this size as fractions and areas, (N, 5)."""
    fractions = np.asarray(boxes, np.float32).reshape(-1, 4) / np.array([width, height] * 2, np.float32)
    area = (fractions[:, 2] - fractions[:, 0]) * (fractions[:, 3] - fractions[:, 1])
    return np.concatenate([fractions, area[:, None]], axis=1, dtype=np.float32)


def crop_regions(
    pixels: np.ndarray, boxes: Sequence[Sequence[float]], patch: int, classes: Sequence[int] | None = None
) -> ImageRegions:
    """The whole image and its boxes (left, top, right, bottom) in pixels, each resized to patch × patch."""
    height, width, _ = pixels.shape
    image = Image.fromarray(pixels)
    every = [(0.0, 0.0, float(width), float(height)), *boxes]
    crops = [_crop(image, box).resize((patch, patch), Image.Resampling.BILINEAR) for box in every]
    features = np.stack([np.asarray(one).reshape(-1) for one in crops])
    kinds = None if classes is None else np.array([UNKNOWN_CLASS, *classes], np.int64)
    return ImageRegions(features, normalize_boxes(every, width, height), kinds)


def _crop(image: Image.Image, box: Sequence[float]) -> Image.Image:
    """All pixels that a box touches. (Resizing with a box would also read pixels beside it.)"""
    left, top, right, bottom = (
        round(number, 6) for number in box
    )  # undo rounding errors: three times a third of 9 is 9
    return image.crop((math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)))


def grid_regions(pixels: np.ndarray, cells: int, patch: int) -> ImageRegions:
    """The whole image, and a grid of cells × cells of equal size, row by row."""
    height, width, _ = pixels.shape
    down, across = height / cells, width / cells
    positions = [(row, column) for row in range(cells) for column in range(cells)]
    boxes = [(c * across, r * down, (c + 1) * across, (r + 1) * down) for r, c in positions]
    return crop_regions(pixels, boxes, patch)


def image_regions(
    pixels: np.ndarray, boxes: Sequence[Sequence[float]] | None, *, cells: int, patch: int
) -> ImageRegions:
    """The regions of an image for a model: a grid if `cells` is not 0, else the boxes given."""
    return grid_regions(pixels, cells, patch) if cells else crop_regions(pixels, boxes or (), patch)


class Regions:
    """A dataset of the regions of many images, of varying number, in three arrays."""

    def __init__(self, images: Iterable[ImageRegions]) -> None:
        some = list(images)
        assert some, "no images"
        self.counts = np.array([len(one.features) for one in some], np.int64)
        self._starts = np.cumsum(self.counts) - self.counts
        self._features = np.concatenate([one.features for one in some])
        self._boxes = np.concatenate([one.boxes for one in some])
        self._classes = None if some[0].classes is None else np.concatenate([one.classes for one in some])

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, number: int) -> ImageRegions:
        some = slice(self._starts[number], self._starts[number] + self.counts[number])
        classes = None if self._classes is None else self._classes[some]
        return ImageRegions(self._features[some], self._boxes[some], classes)

    @property
    def width(self) -> int:
        """F, the number of features of a region."""
        return int(self._features.shape[1])

    def collate(self, numbers: np.ndarray | Sequence[int]) -> RegionBatch:
        """A batch of these images, padded after the last region of each."""
        numbers = np.asarray(numbers)
        counts = self.counts[numbers]
        positions = np.arange(counts.max())
        real = positions < counts[:, None]  # (B, R)
        flat = self._starts[numbers, None] + np.minimum(positions, counts[:, None] - 1)
        boxes = np.where(real[:, :, None], self._boxes[flat], np.float32(0))
        classes = (
            None if self._classes is None else torch.from_numpy(np.where(real, self._classes[flat], UNKNOWN_CLASS))
        )
        return RegionBatch(to_features(self._features[flat]), torch.from_numpy(boxes), classes)


def collate_regions(images: Sequence[ImageRegions]) -> RegionBatch:
    """A batch of several images."""
    return Regions(images).collate(np.arange(len(images)))


def to_features(features: np.ndarray) -> Tensor:
    """Features as a model reads them: uint8 pixels are normalized, others stay."""
    found = torch.from_numpy(np.asarray(features, np.float32))
    return (found - PIXEL_MEAN) / PIXEL_SCALE if features.dtype == np.uint8 else found
