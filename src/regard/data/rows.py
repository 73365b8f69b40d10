"""Rows of pieces with what is wanted of them, in memory; batches of like length, so that little is padding."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import IGNORED, MARK, Position, bucketed, endless, shuffled
from regard.errors import DataError

STREAM = 8  # of random numbers; others order sentence pairs, windows and masked rows
MOST = 32  # rows of a batch (Devlin 2019, A.3): of short ones more would make fewer steps and learn less


class Encoding(Protocol):
    """A row as the tokenizer gives it."""

    @property
    def ids(self) -> list[int]: ...

    @property
    def segment_ids(self) -> list[int]: ...


@dataclass(frozen=True)
class RowBatch:
    """Rows as tensors. B rows, T positions."""

    ids: Tensor  # (B, T)
    segment_ids: Tensor  # (B, T) 0 the first text, and padding; 1 the second
    targets: Tensor  # (B,) a class or a score; or (B, T) a class for each piece, -100: nothing is wanted of it
    tokens: int  # targets that are wanted
    indices: Tensor  # (B,) which rows these are

    def to(self, device: torch.device | str) -> "RowBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


class Rows:
    """Rows of pieces: their ids in one array, and where each ends. Targets are a number a row, or one a piece."""

    def __init__(
        self, encoded: Iterable[Encoding], targets: np.ndarray | Sequence[Sequence[int]], padding: int
    ) -> None:
        rows = list(encoded)
        self.lengths = np.array([len(row.ids) for row in rows], np.int64)
        self._ends = np.cumsum(self.lengths)
        self._ids = np.array([number for row in rows for number in row.ids], np.int32)
        self._firsts = np.array([len(row.segment_ids) - sum(row.segment_ids) for row in rows], np.int64)
        self._each = not isinstance(targets, np.ndarray)
        self._targets: np.ndarray = np.array([one for row in targets for one in row] if self._each else targets)
        self._padding = padding

    def __len__(self) -> int:
        return len(self.lengths)

    def plan(self, *, max_tokens: int, seed: int, epoch: int, most: int | None = None) -> list[np.ndarray]:
        """Batches of similar lengths: each row once, at most `max_tokens` positions with padding and 32 rows."""
        # Rows have one side here; what is counted for the other, and for the marks of both, is taken off.
        lengths = self.lengths[:most] - 2 * MARK
        batches = bucketed(lengths, np.zeros_like(lengths), max_tokens=max_tokens, seed=seed, epoch=epoch)
        parts = [part for batch in batches for part in np.array_split(batch, -(-len(batch) // MOST))]
        return [parts[i] for i in shuffled(len(parts), seed, epoch, STREAM)]

    def collate(self, indices: np.ndarray) -> RowBatch:
        lengths = self.lengths[indices]
        places = np.arange(lengths.max())
        real = places < lengths[:, None]  # (B, T)
        flat = (self._ends[indices] - lengths)[:, None] + np.minimum(places, lengths[:, None] - 1)
        ids = np.where(real, self._ids[flat], self._padding).astype(np.int64)
        segment_ids = (real & (places >= self._firsts[indices, None])).astype(np.int64)
        targets = np.where(real, self._targets[flat], IGNORED) if self._each else self._targets[indices]
        return RowBatch(
            ids=torch.from_numpy(ids),
            segment_ids=torch.from_numpy(segment_ids),
            targets=torch.from_numpy(targets),
            tokens=int((targets != IGNORED).sum()) if self._each else len(indices),
            indices=torch.from_numpy(indices.astype(np.int64)),
        )


@dataclass(frozen=True)
class RowData:
    """Rows to learn from and rows to be measured on."""

    training: Rows
    validation: Rows

    def __post_init__(self) -> None:
        if not len(self.training) or not len(self.validation):
            raise DataError(
                f"{len(self.training)} rows to train on and {len(self.validation)} held out; wanted some of each"
            )

    def training_batches(self, *, max_tokens: int, seed: int, start: Position) -> Iterator[tuple[Position, RowBatch]]:
        """Batches without end, in an order that is a pure function of (seed, epoch, index)."""
        plans = endless(lambda epoch: self.training.plan(max_tokens=max_tokens, seed=seed, epoch=epoch), start)
        return ((position, self.training.collate(indices)) for position, indices in plans)

    def batches_an_epoch(self, *, max_tokens: int, seed: int) -> int:
        return len(self.training.plan(max_tokens=max_tokens, seed=seed, epoch=0))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[RowBatch]:
        """The held-out rows, or the first `most` of them, once."""
        for indices in self.validation.plan(max_tokens=max_tokens, seed=0, epoch=0, most=most):
            yield self.validation.collate(indices)
