"""Preprocess images: resize and crop to a square of one size, normalize the pixels, and move boxes along."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

Crop = Literal["center", "squash", "pad"]
# Of ImageNet, red, green and blue from 0 to 1: pretrained image encoders expect pixels normalized by them.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
PAD_COLOR = (124, 116, 104)  # about IMAGENET_MEAN, so that padding becomes about zero


class CropTransform(NamedTuple):
    """Which box of an image goes to which box of the square: (left, top, right, bottom), both in pixels."""

    source: tuple[int, int, int, int]
    target: tuple[int, int, int, int]

    def to_square(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes (N, 4) of the image as boxes of the square, clipped to the visible part.

        A box that lies outside gets zero area.
        """
        left, top, right, bottom = self.target
        return self._move(boxes, self.source, self.target).clip((left, top) * 2, (right, bottom) * 2)

    def to_image(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes (N, 4) of the square as boxes of the image."""
        left, top, right, bottom = self.source
        return self._move(boxes, self.target, self.source).clip((left, top) * 2, (right, bottom) * 2)

    @staticmethod
    def _move(boxes: np.ndarray, source: tuple[int, ...], target: tuple[int, ...]) -> np.ndarray:
        start, to = np.array(source[:2] * 2), np.array(target[:2] * 2)
        scale = (np.array(target[2:] * 2) - to) / (np.array(source[2:] * 2) - start)
        return (np.asarray(boxes, np.float64).reshape(-1, 4) - start) * scale + to


def crop_transform(width: int, height: int, side: int, crop: Crop) -> CropTransform:
    """How to bring an image of this size to `side` × `side`.

    center: the largest centered square; squash: the whole image, stretched; pad: the whole image, with borders.
    """
    whole, square = (0, 0, width, height), (0, 0, side, side)
    if crop == "squash":
        return CropTransform(whole, square)
    if crop == "center":
        short = min(width, height)
        left, top = (width - short) // 2, (height - short) // 2
        return CropTransform((left, top, left + short, top + short), square)
    assert crop == "pad", crop
    scale = side / max(width, height)
    wide, high = max(1, round(width * scale)), max(1, round(height * scale))
    left, top = (side - wide) // 2, (side - high) // 2
    return CropTransform(whole, (left, top, left + wide, top + high))


def preprocess(image: Image.Image, side: int, *, crop: Crop = "center") -> np.ndarray:
    """Resize and crop an RGB image to pixels (side, side, 3) of uint8."""
    assert image.mode == "RGB", image.mode
    source, target = crop_transform(*image.size, side, crop)
    left, top, right, bottom = target
    # Crop while resizing: an image one pixel high would become huge if it were resized first.
    part = image.resize((right - left, bottom - top), Image.Resampling.BICUBIC, box=source)
    pixels = np.full((side, side, 3), PAD_COLOR, np.uint8)
    pixels[top:bottom, left:right] = np.asarray(part)
    return pixels


def normalize(pixels: np.ndarray | Tensor) -> Tensor:
    """Normalize pixels (B, side, side, 3) of uint8 by ImageNet's mean and deviation: float32 (B, 3, side, side)."""
    if isinstance(pixels, np.ndarray):
        pixels = torch.tensor(pixels)  # a copy: memory-mapped pixels are read-only
    assert pixels.dtype == torch.uint8, pixels.dtype
    assert pixels.ndim == 4, pixels.shape
    assert pixels.shape[3] == 3, pixels.shape
    mean, std = (torch.tensor(values, device=pixels.device) for values in (IMAGENET_MEAN, IMAGENET_STD))
    return ((pixels.float() / 255 - mean) / std).permute(0, 3, 1, 2).contiguous()  # (B, 3, side, side)


def renormalize(pixels: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Convert pixels (B, 3, side, side) normalized by ImageNet's mean and deviation to other ones."""
    ours = [torch.tensor(values, device=pixels.device)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD)]
    theirs = [torch.tensor(values, device=pixels.device)[:, None, None] for values in (mean, std)]
    return (pixels * ours[1] + ours[0] - theirs[0]) / theirs[1]
