"""Batches of a parallel corpus: tokenized pairs to train on and held-out ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.batches import DataPosition, PairBatch, bucket_by_length, collate_padded, iterate_epochs
from regard.data.stores.pairs import TokenizedPairs


@dataclass(frozen=True)
class ParallelText:
    """Pairs of ids, and the special ids that batches are padded and closed with."""

    training: TokenizedPairs
    validation: TokenizedPairs
    pad_id: int
    bos_id: int
    eos_id: int

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, PairBatch]]:
        """Endless batches, in an order that is a pure function of (seed, epoch, index)."""
        for position, indices in iterate_epochs(lambda epoch: self._plan(max_tokens, seed, epoch), start):
            yield position, self._collate(self.training, indices)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int:
        return len(self._plan(max_tokens, seed, 0))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[PairBatch]:
        """The held-out pairs, or the first `most`, once, bucketed by length."""
        pairs = self.validation
        source, target = pairs.source_lengths[:most], pairs.target_lengths[:most]
        for indices in bucket_by_length(source, target, max_tokens=max_tokens, seed=0, epoch=0):
            yield self._collate(pairs, indices)

    def _plan(self, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        pairs = self.training
        return bucket_by_length(
            pairs.source_lengths, pairs.target_lengths, max_tokens=max_tokens, seed=seed, epoch=epoch
        )

    def _collate(self, pairs: TokenizedPairs, indices: np.ndarray) -> PairBatch:
        return collate_padded(pairs, indices, self.bos_id, self.eos_id, self.pad_id)
