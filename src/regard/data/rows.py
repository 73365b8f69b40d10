"""A dataset of tokenized rows with their targets, in memory; batches of similar lengths, so that little is padding."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import (
    ADDED_TOKENS,
    IGNORE_INDEX,
    DataPosition,
    bucket_by_length,
    iterate_epochs,
    shuffle_indices,
)
from regard.errors import DataError

STREAM = 8  # random stream of these batches; other datasets use other streams
MAX_ROWS = 32  # of a batch (Devlin 2019, A.3): more short rows a batch would mean fewer steps, which learn less


class Encoding(Protocol):
    """A row as the tokenizer encodes it."""

    @property
    def ids(self) -> list[int]: ...

    @property
    def segment_ids(self) -> list[int]: ...


@dataclass(frozen=True)
class RowBatch:
    """Padded rows. B rows, T positions."""

    ids: Tensor  # (B, T)
    segment_ids: Tensor  # (B, T) 0 the first text and padding; 1 the second text
    targets: Tensor  # (B,) a class or a score; or (B, T) a class for each token, IGNORE_INDEX without a loss
    tokens: int  # targets with a loss
    indices: Tensor  # (B,) the examples

    def to(self, device: torch.device | str) -> "RowBatch":
        """The same batch with all tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


class RowDataset:
    """Tokenized rows: all ids in one array, and where each row ends. One target a row, or one a token."""

    def __init__(self, encoded: Iterable[Encoding], targets: np.ndarray | Sequence[Sequence[int]], pad_id: int) -> None:
        rows = list(encoded)
        self.lengths = np.array([len(row.ids) for row in rows], np.int64)
        self._ends = np.cumsum(self.lengths)
        self._ids = np.array([number for row in rows for number in row.ids], np.int32)
        self._first_lengths = np.array([len(row.segment_ids) - sum(row.segment_ids) for row in rows], np.int64)
        self._per_token = not isinstance(targets, np.ndarray)
        self._targets: np.ndarray = np.array([one for row in targets for one in row] if self._per_token else targets)
        self._pad_id = pad_id

    def __len__(self) -> int:
        return len(self.lengths)

    def plan(self, *, max_tokens: int, seed: int, epoch: int, most: int | None = None) -> list[np.ndarray]:
        """An epoch's batches: each row once, similar lengths together, at most `max_tokens` positions and 32 rows."""
        # `bucket_by_length` counts a target side and added tokens, which rows do not have: subtract them.
        lengths = self.lengths[:most] - 2 * ADDED_TOKENS
        batches = bucket_by_length(lengths, np.zeros_like(lengths), max_tokens=max_tokens, seed=seed, epoch=epoch)
        parts = [part for batch in batches for part in np.array_split(batch, -(-len(batch) // MAX_ROWS))]
        return [parts[i] for i in shuffle_indices(len(parts), seed, epoch, STREAM)]

    def collate(self, indices: np.ndarray) -> RowBatch:
        """These rows, padded to the longest."""
        lengths = self.lengths[indices]
        positions = np.arange(lengths.max())
        real = positions < lengths[:, None]  # (B, T)
        flat = (self._ends[indices] - lengths)[:, None] + np.minimum(positions, lengths[:, None] - 1)
        ids = np.where(real, self._ids[flat], self._pad_id).astype(np.int64)
        segment_ids = (real & (positions >= self._first_lengths[indices, None])).astype(np.int64)
        targets = np.where(real, self._targets[flat], IGNORE_INDEX) if self._per_token else self._targets[indices]
        return RowBatch(
            ids=torch.from_numpy(ids),
            segment_ids=torch.from_numpy(segment_ids),
            targets=torch.from_numpy(targets),
            tokens=int((targets != IGNORE_INDEX).sum()) if self._per_token else len(indices),
            indices=torch.from_numpy(indices.astype(np.int64)),
        )


@dataclass(frozen=True)
class RowSplits:
    """Training rows and validation rows."""

    training: RowDataset
    validation: RowDataset

    def __post_init__(self) -> None:
        if not len(self.training) or not len(self.validation):
            raise DataError(
                f"{len(self.training)} training rows and {len(self.validation)} validation rows; wanted some of each"
            )

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, RowBatch]]:
        """Endless batches, in an order that is a pure function of (seed, epoch, index)."""
        plans = iterate_epochs(lambda epoch: self.training.plan(max_tokens=max_tokens, seed=seed, epoch=epoch), start)
        return ((position, self.training.collate(indices)) for position, indices in plans)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int:
        return len(self.training.plan(max_tokens=max_tokens, seed=seed, epoch=0))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[RowBatch]:
        """The validation rows, or the first `most` of them, once."""
        for indices in self.validation.plan(max_tokens=max_tokens, seed=0, epoch=0, most=most):
            yield self.validation.collate(indices)
