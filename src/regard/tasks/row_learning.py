"""What learning from labeled rows and from tagged words share: where the batches come from."""

from collections.abc import Iterator

from regard.data.batches import Position
from regard.data.rows import RowBatch, RowData


class RowLearning:
    """The side of a task that hands out its data's batches."""

    def __init__(self, data: RowData) -> None:
        self.data = data

    def training_batches(self, *, budget: int, seed: int, start: Position) -> Iterator[tuple[Position, RowBatch]]:
        return self.data.training_batches(budget=budget, seed=seed, start=start)

    def batches_an_epoch(self, *, budget: int, seed: int) -> int:
        return self.data.batches_an_epoch(budget=budget, seed=seed)

    def heldout_batches(self, *, budget: int, most: int | None = None) -> Iterator[RowBatch]:
        return self.data.heldout_batches(budget=budget, most=most)
