"""A parallel text ready to learn from: tokenized pairs to train on and tokenized pairs kept out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.batches import PairBatch, Position, bucketed, collate_padded, endless
from regard.data.tokenized import TokenizedPairs


@dataclass(frozen=True)
class ParallelText:
    """Pairs of ids, and the symbols that batches are padded and closed with."""

    training: TokenizedPairs
    heldout: TokenizedPairs
    padding: int
    begin: int
    end: int

    def training_batches(self, *, budget: int, seed: int, start: Position) -> Iterator[tuple[Position, PairBatch]]:
        """Batches without end, in an order that is a pure function of (seed, epoch, index)."""
        for position, indices in endless(lambda epoch: self._plan(budget, seed, epoch), start):
            yield position, self._collate(self.training, indices)

    def batches_an_epoch(self, *, budget: int, seed: int) -> int:
        return len(self._plan(budget, seed, 0))

    def heldout_batches(self, *, budget: int, most: int | None = None) -> Iterator[PairBatch]:
        """The held-out pairs once, like lengths together; of `most` only the first so many."""
        pairs = self.heldout
        source, target = pairs.source_lengths[:most], pairs.target_lengths[:most]
        for indices in bucketed(source, target, budget=budget, seed=0, epoch=0):
            yield self._collate(pairs, indices)

    def _plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        pairs = self.training
        return bucketed(pairs.source_lengths, pairs.target_lengths, budget=budget, seed=seed, epoch=epoch)

    def _collate(self, pairs: TokenizedPairs, indices: np.ndarray) -> PairBatch:
        return collate_padded(pairs, indices, self.begin, self.end, self.padding)
