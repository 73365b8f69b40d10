"""Dropout (Srivastava 2014). The C form draws on all cores and stores no mask: forward and backward draw the same."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from regard.ops.dispatch import c_library


def dropout(hidden: Tensor, p: float) -> Tensor:
    """Each number is zeroed with probability `p`, the others are divided by 1 - p. For training: it always draws."""
    if 0 < p < 1 and c_library(hidden, has_backward=True) is not None:
        return _Dropout.apply(hidden, p)
    return F.dropout(hidden, p)


class _Dropout(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, p: float) -> Tensor:
        seeds = torch.randint(2**32, (2,)).tolist()  # from torch's generator, so that a repeated step draws the same
        ctx.p, ctx.seeds = p, seeds
        return dropout_with_seeds(hidden, p, seeds)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        return dropout_with_seeds(outer, ctx.p, ctx.seeds), None


def dropout_with_seeds(hidden: Tensor, p: float, seeds: list[int]) -> Tensor:
    """What is dropped is a function of the index and two 32-bit seeds. The C form alone: it has no torch form."""
    if not 0 <= p < 1 or len(seeds) != 2 or not all(0 <= seed < 2**32 for seed in seeds):
        raise ValueError(f"p is {p} and seeds are {seeds}, wanted p from 0 to below 1 and two seeds of 32 bits")
    library = c_library(hidden, has_backward=True)
    if library is None:
        raise ValueError(f"{hidden.dtype} on {hidden.device}; wanted float32 on the CPU, with kernels enabled")
    hidden = hidden.contiguous()
    out = torch.empty_like(hidden)
    threshold, scale = round(p * 2**32), 1 / (1 - p)
    library.dropout(
        hidden.data_ptr(), out.data_ptr(), hidden.numel(), *seeds, threshold, scale, torch.get_num_threads()
    )
    return out
