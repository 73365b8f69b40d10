"""Dropout (Srivastava 2014). The C form draws on all cores and stores no mask: forward and backward draw the same.

Where several processes compute one batch, each its own rows, `rows_of_batch` makes them drop what one process would.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from regard.ops.dispatch import c_library


class Rows(NamedTuple):
    """Which rows of a batch this process computes."""

    first: int
    number: int
    whole: int  # rows of the batch


_rows: Rows | None = None  # None: all rows


@contextmanager
def rows_of_batch(rows: Rows) -> Iterator[None]:
    """Inside, what is computed are these rows of a batch: they get the random numbers that they have in the batch.

    The first dimension of everything drawn for is that of the rows.
    """
    global _rows
    before, _rows = _rows, rows
    try:
        yield
    finally:
        _rows = before


def rand(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """torch.rand of (B, …), of the rows that are computed."""
    if _rows is None:
        return torch.rand(shape, device=device)
    _check(shape)
    return torch.rand((_rows.whole, *shape[1:]), device=device).narrow(0, _rows.first, _rows.number)


def dropout(hidden: Tensor, p: float) -> Tensor:
    """Each number is zeroed with probability `p`, the others are divided by 1 - p. For training: it always draws."""
    if 0 < p < 1 and c_library(hidden, has_backward=True) is not None:
        return _Dropout.apply(hidden, p)
    if _rows is None or hidden.device.type != "cpu" or not 0 < p < 1:
        return F.dropout(hidden, p)
    _check(hidden.shape)
    # What F.dropout does on a CPU, for the whole batch. On an accelerator each process draws numbers of its own.
    mask = hidden.new_empty((_rows.whole, *hidden.shape[1:])).bernoulli_(1 - p)
    return hidden * mask.narrow(0, _rows.first, _rows.number) * (1 / (1 - p))


class _Dropout(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, p: float) -> Tensor:
        seeds = torch.randint(2**32, (2,)).tolist()  # from torch's generator, so that a repeated step draws the same
        ctx.p, ctx.seeds, ctx.first = p, seeds, _first_index(hidden)
        return dropout_with_seeds(hidden, p, seeds, ctx.first)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        return dropout_with_seeds(outer, ctx.p, ctx.seeds, ctx.first), None


def dropout_with_seeds(hidden: Tensor, p: float, seeds: list[int], first: int = 0) -> Tensor:
    """What is dropped is a function of the index and two 32-bit seeds. The C form alone: it has no torch form.

    `first`: the index of the first number.
    """
    if not 0 <= p < 1 or len(seeds) != 2 or not all(0 <= seed < 2**32 for seed in seeds) or first < 0:
        raise ValueError(
            f"p is {p}, seeds are {seeds}, first is {first}; wanted p from 0 to below 1, two seeds of 32 bits, an index"
        )
    library = c_library(hidden, has_backward=True)
    if library is None:
        raise ValueError(f"{hidden.dtype} on {hidden.device}; wanted float32 on the CPU, with kernels enabled")
    hidden = hidden.contiguous()
    out = torch.empty_like(hidden)
    threshold, scale = round(p * 2**32), 1 / (1 - p)
    library.dropout(
        hidden.data_ptr(), out.data_ptr(), hidden.numel(), first, *seeds, threshold, scale, torch.get_num_threads()
    )
    return out


def _first_index(hidden: Tensor) -> int:
    """The index that the first number has in the batch."""
    if _rows is None:
        return 0
    _check(hidden.shape)
    return _rows.first * (hidden.numel() // max(1, _rows.number))


def _check(shape: tuple[int, ...]) -> None:
    assert _rows is not None
    assert shape[0] == _rows.number, f"random numbers for {tuple(shape)}, wanted {_rows.number} rows of a batch"
