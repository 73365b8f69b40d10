"""Batches of sentence pairs: their order, their padding, and the place to go on from.

The order is a function of (seed, epoch, index) and nothing else: a run can stop anywhere and go on as if it had
not. A plan is the list of an epoch's batches, each of them indices of examples; collating makes tensors. Batches are
bucketed by length: sentences of similar length together, so that there is little padding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.errors import DataError

POOL = 64  # batches sorted together: more means less padding and less chance in what meets in a batch
MARK = 1  # every sentence gets one more token: the source its end, the target its begin or end
IGNORED = -100  # a target that nothing is wanted of

Item = TypeVar("Item")


class Pairs(Protocol):
    """Tokenized pairs, in memory or on disk."""

    def __getitem__(self, i: int, /) -> tuple[np.ndarray | Sequence[int], np.ndarray | Sequence[int]]: ...


@dataclass(frozen=True)
class Position:
    """The place of a batch in the order of all epochs."""

    epoch: int
    index: int


@dataclass(frozen=True)
class PairBatch:
    """Sentence pairs as tensors. B rows, S source and T target positions, N examples."""

    source: Tensor  # (B, S) ids and end
    target_in: Tensor  # (B, T) begin and ids: what the decoder reads
    target_out: Tensor  # (B, T) ids and end: what it should say
    tokens: int  # target positions that are not padding
    indices: Tensor  # (N,) the examples, row by row

    def to(self, device: torch.device | str) -> "PairBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


def bucketed(
    source_lengths: np.ndarray, target_lengths: np.ndarray, *, max_tokens: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """The epoch's batches: every example once, like lengths together, at most `max_tokens` positions a batch.

    Positions are rows × (longest source + longest target), padding and the added begin and end included. An
    example that is longer than the budget makes a batch of its own.
    """
    source, target = np.asarray(source_lengths) + MARK, np.asarray(target_lengths) + MARK
    order = shuffled(len(source), seed, epoch, 0)
    order = order[_sorted_in_pools(source[order], target[order], max_tokens)]
    cuts = _cuts(source[order].tolist(), target[order].tolist(), max_tokens)
    batches = [order[start:stop] for start, stop in pairwise(cuts)]
    return [batches[i] for i in shuffled(len(batches), seed, epoch, 1)]


def shuffled(count: int, seed: int, epoch: int, stream: int) -> np.ndarray:
    """A random order of range(count), the same for ever for the same numbers."""
    return np.argsort(num_samples(count, seed, epoch, stream), kind="stable")


def num_samples(count: int, *numbers: int) -> np.ndarray:
    """Random 64-bit numbers, the same for ever for the same `numbers`."""
    # Numpy keeps the raw stream of Philox from version to version, but not what `permutation` makes of it.
    return np.asarray(np.random.Philox(np.random.SeedSequence(numbers)).random_raw(count))


def padding_share(plan: Sequence, source_lengths: np.ndarray, target_lengths: np.ndarray) -> float:
    """The share of a plan's positions that are padding."""
    source, target = np.asarray(source_lengths) + MARK, np.asarray(target_lengths) + MARK
    positions = sum(len(batch) * int(source[batch].max() + target[batch].max()) for batch in plan)
    return 1 - int(source.sum() + target.sum()) / positions


def endless(plan: Callable[[int], Sequence[Item]], start: Position) -> Iterator[tuple[Position, Item]]:
    """Epoch after epoch the items of `plan(epoch)`, each with the position from which the next one follows."""
    epoch, index = start.epoch, start.index
    while True:
        items = plan(epoch)
        if not items:
            raise DataError(f"epoch {epoch} has no batches; wanted at least one example to train on")
        if index > len(items):
            raise DataError(
                f"cannot go on at batch {index} of epoch {epoch}, which has {len(items)}: the data or settings changed"
            )
        for item in items[index:]:
            index += 1
            yield Position(epoch, index), item
        epoch, index = epoch + 1, 0


def collate_padded(
    pairs: Pairs, indices: np.ndarray | Sequence[int], bos_id: int, eos_id: int, pad_id: int
) -> PairBatch:
    """One example a row, padded to the longest."""
    indices = np.asarray(indices)
    sources, targets = zip(*(pairs[i] for i in indices.tolist()), strict=True)
    source, source_ends = _joined(sources)
    target, target_ends = _joined(targets)
    target_starts = np.concatenate(([0], target_ends[:-1]))
    source_mask, target_mask = _mask(source_ends), _mask(target_ends)
    return PairBatch(
        source=_filled(source_mask, np.insert(source, source_ends, eos_id), pad_id),
        target_in=_filled(target_mask, np.insert(target, target_starts, bos_id), pad_id),
        target_out=_filled(target_mask, np.insert(target, target_ends, eos_id), pad_id),
        tokens=len(target) + len(indices),
        indices=torch.from_numpy(indices),
    )


def _sorted_in_pools(source: np.ndarray, target: np.ndarray, max_tokens: int) -> np.ndarray:
    """Indices sorted by (target, source) length inside pools of about POOL batches."""
    if not len(source):
        return np.arange(0)
    pool = np.arange(len(source)) // max(1, int(POOL * max_tokens / (source + target).mean()))
    width = int(source.max()) + 1
    # Up in one group and down in the next: where two of them meet, the lengths meet too.
    key = target * width + np.where(target % 2, width - 1 - source, source)
    top = int(key.max()) + 1
    return np.argsort(pool * top + np.where(pool % 2, top - 1 - key, key), kind="stable")


def _cuts(source: list[int], target: list[int], max_tokens: int) -> list[int]:
    """Where batches begin and the last one ends, so that no padded batch is over the budget."""
    cuts, rows, longest_source, longest_target = [0], 0, 0, 0
    for place, (s, t) in enumerate(zip(source, target, strict=True)):
        rows += 1
        longest_source, longest_target = max(longest_source, s), max(longest_target, t)
        if rows * (longest_source + longest_target) > max_tokens and rows > 1:
            cuts.append(place)
            rows, longest_source, longest_target = 1, s, t
    return [*cuts, len(source)] if source else cuts


def _joined(sentences: Sequence[np.ndarray | Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """All sentences one after another, and where each one ends."""
    flat = np.concatenate(sentences, dtype=np.int64, casting="unsafe")  # an empty list would be float
    return flat, np.cumsum([len(ids) for ids in sentences])


def _mask(ends: np.ndarray) -> np.ndarray:
    """Which positions of the rows (B, longest) are not padding."""
    lengths = np.diff(ends, prepend=0) + MARK
    return np.arange(lengths.max()) < lengths[:, None]


def _filled(mask: np.ndarray, values: np.ndarray, pad_id: int) -> Tensor:
    array = np.full(mask.shape, pad_id, np.int64)
    array[mask] = values
    return torch.from_numpy(array)
