"""Batches of sentence pairs: shuffling, bucketing by length, padding, and resuming.

The order of batches is a function of (seed, epoch, index) and nothing else, so a run can stop anywhere and resume with
the same batches. An epoch's plan is a list of batches, each an array of example indices; collating makes tensors.
Batches are bounded by `max_tokens` (positions with padding), not by a number of rows: sentences of similar length share
a batch, so few positions are padding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, DataError

POOL_BATCHES = 64  # batches sorted by length together: a larger pool means less padding and less randomness
ADDED_TOKENS = 1  # every sentence gets one more token: the source eos, the target bos or eos
IGNORE_INDEX = -100  # target of a position without a loss

Item = TypeVar("Item")


class Pairs(Protocol):
    """A dataset of tokenized pairs, in memory or on disk."""

    def __getitem__(self, i: int, /) -> tuple[np.ndarray | Sequence[int], np.ndarray | Sequence[int]]: ...


@dataclass(frozen=True)
class DataPosition:
    """Where training stands in its data: the epoch, and the index of the next batch in it."""

    epoch: int
    index: int


@dataclass(frozen=True)
class PairBatch:
    """Padded sentence pairs. B pairs, S source and T target positions."""

    source: Tensor  # (B, S) ids and eos
    target_in: Tensor  # (B, T) bos and ids: the decoder's input
    target_out: Tensor  # (B, T) ids and eos: its targets
    tokens: int  # target positions that are not padding
    indices: Tensor  # (B,) the examples

    def to(self, device: torch.device | str) -> "PairBatch":
        """The same batch with all tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


def count_rows(batch: Any) -> int:
    """The rows of a batch: the first dimension of its first tensor."""
    return next(len(value) for value in _values(batch).values() if isinstance(value, Tensor))


def take_rows(batch: Item, rows: slice) -> Item:
    """The batch of these rows alone, with the padding and the `tokens` that it had: the share of one process.

    A batch with tensors that are not (B, …) has a method `take_rows` of its own.
    """
    if hasattr(batch, "take_rows"):
        found: Item = batch.take_rows(rows)
        return found
    count = count_rows(batch)
    several = {name: value for name, value in _values(batch).items() if isinstance(value, Tensor | list)}
    for name, value in several.items():
        if len(value) != count:
            raise ConfigError(
                f"{type(batch).__name__}.{name} has {len(value)} rows, the batch has {count}: several processes cannot "
                "share it; give the batch a method take_rows(rows)"
            )
    return replace(batch, **{name: value[rows] for name, value in several.items()})  # type: ignore[type-var]


def take_positions(positions: Tensor, rows: slice, width: int) -> tuple[Tensor, Tensor]:
    """Of positions row · width + column those in the rows, counted from the first of these; and which ones (N,)."""
    taken = (positions >= rows.start * width) & (positions < rows.stop * width)
    return positions[taken] - rows.start * width, taken


def _values(batch: Any) -> dict[str, Any]:
    return {one.name: getattr(batch, one.name) for one in fields(batch)}


def bucket_by_length(
    source_lengths: np.ndarray, target_lengths: np.ndarray, *, max_tokens: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """The shuffled batches of an epoch: every example once, similar lengths together, at most `max_tokens` positions.

    Positions are rows × (longest source + longest target), with padding and the added bos and eos. An example
    longer than `max_tokens` makes a batch of its own.
    """
    source, target = np.asarray(source_lengths) + ADDED_TOKENS, np.asarray(target_lengths) + ADDED_TOKENS
    order = shuffle_indices(len(source), seed, epoch, 0)
    order = order[_sort_in_pools(source[order], target[order], max_tokens)]
    boundaries = _batch_boundaries(source[order].tolist(), target[order].tolist(), max_tokens)
    batches = [order[start:stop] for start, stop in pairwise(boundaries)]
    return [batches[i] for i in shuffle_indices(len(batches), seed, epoch, 1)]


def shuffle_indices(count: int, seed: int, epoch: int, stream: int) -> np.ndarray:
    """A random permutation of range(count), always the same for the same seed, epoch and stream."""
    return np.argsort(random_uint64(count, seed, epoch, stream), kind="stable")


def random_uint64(count: int, *key: int) -> np.ndarray:
    """Random 64-bit numbers, always the same for the same `key`."""
    # Numpy keeps Philox's raw stream stable across versions, but not the result of `permutation`.
    return np.asarray(np.random.Philox(np.random.SeedSequence(key)).random_raw(count))


def padding_fraction(plan: Sequence[np.ndarray], source_lengths: np.ndarray, target_lengths: np.ndarray) -> float:
    """The fraction of a plan's positions that are padding."""
    source, target = np.asarray(source_lengths) + ADDED_TOKENS, np.asarray(target_lengths) + ADDED_TOKENS
    positions = sum(len(batch) * int(source[batch].max() + target[batch].max()) for batch in plan)
    return 1 - int(source.sum() + target.sum()) / positions


def iterate_epochs(plan: Callable[[int], Sequence[Item]], start: DataPosition) -> Iterator[tuple[DataPosition, Item]]:
    """The items of `plan(epoch)`, epoch after epoch without end, each with the position to resume from after it."""
    epoch, index = start.epoch, start.index
    while True:
        items = plan(epoch)
        if not items:
            raise DataError(f"epoch {epoch} has no batches; wanted at least one example to train on")
        if index > len(items):
            raise DataError(
                f"cannot resume at batch {index} of epoch {epoch}, which has {len(items)}: the data or settings changed"
            )
        for item in items[index:]:
            index += 1
            yield DataPosition(epoch, index), item
        epoch, index = epoch + 1, 0


def collate_padded(
    pairs: Pairs, indices: np.ndarray | Sequence[int], bos_id: int, eos_id: int, pad_id: int
) -> PairBatch:
    """One pair a row, padded to the longest."""
    indices = np.asarray(indices)
    sources, targets = zip(*(pairs[i] for i in indices.tolist()), strict=True)
    source, source_ends = _concatenate(sources)
    target, target_ends = _concatenate(targets)
    target_starts = np.concatenate(([0], target_ends[:-1]))
    source_mask, target_mask = _real_positions(source_ends), _real_positions(target_ends)
    return PairBatch(
        source=_pad(source_mask, np.insert(source, source_ends, eos_id), pad_id),
        target_in=_pad(target_mask, np.insert(target, target_starts, bos_id), pad_id),
        target_out=_pad(target_mask, np.insert(target, target_ends, eos_id), pad_id),
        tokens=len(target) + len(indices),
        indices=torch.from_numpy(indices),
    )


def _sort_in_pools(source: np.ndarray, target: np.ndarray, max_tokens: int) -> np.ndarray:
    """Indices sorted by (target, source) length inside pools of about POOL_BATCHES batches."""
    if not len(source):
        return np.arange(0)
    pool = np.arange(len(source)) // max(1, int(POOL_BATCHES * max_tokens / (source + target).mean()))
    width = int(source.max()) + 1
    # Ascending in one group and descending in the next, so that lengths also match across their boundary.
    key = target * width + np.where(target % 2, width - 1 - source, source)
    top = int(key.max()) + 1
    return np.argsort(pool * top + np.where(pool % 2, top - 1 - key, key), kind="stable")


def _batch_boundaries(source: list[int], target: list[int], max_tokens: int) -> list[int]:
    """Where batches start, and where the last ends, so that no padded batch has more than `max_tokens`."""
    boundaries, rows, longest_source, longest_target = [0], 0, 0, 0
    for index, (s, t) in enumerate(zip(source, target, strict=True)):
        rows += 1
        longest_source, longest_target = max(longest_source, s), max(longest_target, t)
        if rows * (longest_source + longest_target) > max_tokens and rows > 1:
            boundaries.append(index)
            rows, longest_source, longest_target = 1, s, t
    return [*boundaries, len(source)] if source else boundaries


def _concatenate(sentences: Sequence[np.ndarray | Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """All sentences in a row, and where each one ends."""
    flat = np.concatenate(sentences, dtype=np.int64, casting="unsafe")  # an empty list would be float
    return flat, np.cumsum([len(ids) for ids in sentences])


def _real_positions(ends: np.ndarray) -> np.ndarray:
    """Mask (B, T) of the positions that are not padding, with the added token."""
    lengths = np.diff(ends, prepend=0) + ADDED_TOKENS
    return np.asarray(np.arange(lengths.max()) < lengths[:, None])


def _pad(mask: np.ndarray, values: np.ndarray, pad_id: int) -> Tensor:
    array = np.full(mask.shape, pad_id, np.int64)
    array[mask] = values
    return torch.from_numpy(array)
