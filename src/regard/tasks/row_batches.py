"""Batches of rows: shared by the training tasks that have one text and its target a row."""

from collections.abc import Iterator

from regard.data.batches import DataPosition
from regard.data.rows import RowBatch, RowSplits


class RowTraining:
    """The part of a training task that gives the batches of its data."""

    def __init__(self, data: RowSplits) -> None:
        self.data = data

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, RowBatch]]:
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int:
        return self.data.batches_per_epoch(max_tokens=max_tokens, seed=seed)

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[RowBatch]:
        return self.data.validation_batches(max_tokens=max_tokens, most=most)
