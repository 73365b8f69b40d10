"""Rows of pieces that are asked of pictures, with what is wanted of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from regard.data.batches import MARK, bucketed
from regard.data.regions import Regions
from regard.data.rows import Encoding, RowBatch, Rows


@dataclass(frozen=True)
class PictureRowBatch(RowBatch):
    """Rows beside their pictures. B rows, T positions, R regions."""

    regions: Tensor  # (B, R, F)
    boxes: Tensor  # (B, R, 5); all zeros: padding


class PictureRows(Rows):
    """Rows, each with the number of its picture, the class that is wanted, and what kind of question it is."""

    def __init__(
        self,
        encoded: Iterable[Encoding],
        targets: np.ndarray,
        padding: int,
        *,
        pictures: Sequence[int],
        regions: Regions,
        kinds: Sequence[str],
    ) -> None:
        super().__init__(encoded, targets, padding)
        assert len(self) == len(pictures) == len(kinds)
        self.pictures, self.regions, self.kinds = np.asarray(pictures, np.int64), regions, list(kinds)

    def plan(self, *, max_tokens: int, seed: int, epoch: int, most: int | None = None) -> list[np.ndarray]:
        """Every row once, like lengths together, at most `max_tokens` words and regions a batch, padding counted."""
        regions = self.regions.counts[self.pictures[:most]]
        return bucketed(self.lengths[:most] - MARK, regions - MARK, max_tokens=max_tokens, seed=seed, epoch=epoch)

    def collate(self, indices: np.ndarray) -> PictureRowBatch:
        shown = self.regions.collate(self.pictures[indices])
        return PictureRowBatch(**vars(super().collate(indices)), regions=shown.features, boxes=shown.boxes)
