"""Whether attention falls on the thing that a word speaks of, where the picture's truth is known."""

from collections.abc import Sequence

import numpy as np


def cells_of(box: tuple[int, int, int, int], side: int, grid: int) -> np.ndarray:
    """Which cells (grid · grid,) of a picture a box (left, top, right, bottom) covers: those whose middle is inside."""
    middles = (np.arange(grid) + 0.5) * side / grid
    left, top, right, bottom = box
    rows, columns = (middles > top) & (middles < bottom), (middles > left) & (middles < right)
    return (rows[:, None] & columns[None, :]).ravel()


class Mass:
    """The mean share of attention on the true thing, and by chance: the share of the picture's cells it covers."""

    def __init__(self) -> None:
        self.words = 0
        self._on: np.ndarray | float = 0.0
        self._cells = 0.0

    def add(self, weights: np.ndarray, covered: Sequence[np.ndarray | None]) -> None:
        """Weights (…, T, P) of any heads, and of each of the T words the cells of its thing; None: it has none."""
        for place, cells in enumerate(covered):
            if cells is not None and cells.any():
                self.words += 1
                self._on = self._on + weights[..., place, cells].sum(-1)
                self._cells += float(cells.mean())

    @property
    def on(self) -> np.ndarray:
        """The mean mass on the thing, for each head (…)."""
        return np.asarray(self._on) / max(1, self.words)

    @property
    def chance(self) -> float:
        return self._cells / max(1, self.words)
