"""Pixels as the numbers a model reads."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

# Of ImageNet's pictures, red, green and blue from 0 to 1: what ready-made image encoders were trained with.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def normalize(pixels: np.ndarray | Tensor) -> Tensor:
    """Pixels (B, side, side, 3) of uint8 as float32 (B, 3, side, side), each color less its mean, by its deviation."""
    if isinstance(pixels, np.ndarray):
        pixels = torch.tensor(pixels)  # a copy: pixels mapped from a file must not be written
    assert pixels.dtype == torch.uint8, pixels.dtype
    assert pixels.ndim == 4, pixels.shape
    assert pixels.shape[3] == 3, pixels.shape
    mean, deviation = (torch.tensor(fact, device=pixels.device) for fact in (MEAN, DEVIATION))
    return ((pixels.float() / 255 - mean) / deviation).permute(0, 3, 1, 2).contiguous()  # (B, 3, side, side)


def recolor(pixels: Tensor, mean: Sequence[float], deviation: Sequence[float]) -> Tensor:
    """Normalized pixels (B, 3, side, side) as they would be by another mean and deviation."""
    ours = [torch.tensor(fact, device=pixels.device)[:, None, None] for fact in (MEAN, DEVIATION)]
    theirs = [torch.tensor(fact, device=pixels.device)[:, None, None] for fact in (mean, deviation)]
    return (pixels * ours[1] + ours[0] - theirs[0]) / theirs[1]
