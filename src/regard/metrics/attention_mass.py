"""Attention mass in the box: the share of attention on the object that a word names, for images with known boxes."""

from collections.abc import Sequence

import numpy as np


def cells_in_box(box: tuple[int, int, int, int], side: int, grid: int) -> np.ndarray:
    """Mask (grid · grid,) of the image cells whose center lies in the box (left, top, right, bottom)."""
    centers = (np.arange(grid) + 0.5) * side / grid
    left, top, right, bottom = box
    rows, columns = (centers > top) & (centers < bottom), (centers > left) & (centers < right)
    return (rows[:, None] & columns[None, :]).ravel()


class AttentionMass:
    """Mean attention mass on the true object, and by chance: the share of the image's cells that it covers."""

    def __init__(self) -> None:
        self.words = 0
        self._total: np.ndarray | float = 0.0
        self._cells = 0.0

    def add(self, weights: np.ndarray, covered: Sequence[np.ndarray | None]) -> None:
        """Weights (…, T, P) of any heads, and for each of the T words the cells of its object; None: it names none."""
        for position, cells in enumerate(covered):
            if cells is not None and cells.any():
                self.words += 1
                self._total = self._total + weights[..., position, cells].sum(-1)
                self._cells += float(cells.mean())

    @property
    def mean(self) -> np.ndarray:
        """The mean mass on the object, for each head (…)."""
        return np.asarray(self._total) / max(1, self.words)

    @property
    def chance(self) -> float:
        """The mean mass of uniform attention."""
        return self._cells / max(1, self.words)
