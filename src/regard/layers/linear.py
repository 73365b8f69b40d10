"""x Wᵀ + b, fast also for the few rows of a decoding step."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from regard import kernels

FEW = 128  # rows up to which the other way round is faster
WORTH = 8  # rows from which our own kernel is the fastest
LARGE = 2**18  # numbers from which a matrix is worth several threads


def linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`; without gradients and with few rows in the way that BLAS does fastest on a CPU.

    One row: in parts, since a product of a matrix and a vector is done by one thread, but several of them by all: 22 to
    28 instead of 15 to 18 GB/s of weights on two cores. Some rows: by our own kernel (benchmarks/bench_kernels.py);
    or, where it is not to be had, as (W xᵀ)ᵀ, 15 to 50 % faster.
    """
    if torch.is_grad_enabled() or not hidden.is_cpu or hidden.shape[-1] != weight.shape[1]:  # the last is torch's error
        return F.linear(hidden, weight, bias)
    rows = hidden.numel() // weight.shape[1]
    if rows == 1:
        return in_parts(hidden, weight, bias)
    if is_worth(hidden, weight):
        return kernels.linear(hidden, weight, bias)
    if rows > FEW:
        return F.linear(hidden, weight, bias)
    return (
        in_columns(hidden.reshape(rows, weight.shape[1]), weight, bias)
        .contiguous()
        .view(*hidden.shape[:-1], len(weight))
    )


def is_worth(hidden: Tensor, weight: Tensor) -> bool:
    """Our own kernel is to be had for this product, and the fastest."""
    fit = hidden.shape[-1] == weight.shape[1]  # where it is not, torch says so
    return fit and hidden.numel() // weight.shape[1] >= WORTH and kernels.fits(hidden, weight)


def in_parts(word: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same for one word (…, D), the matrix in parts that are multiplied side by side."""
    parts = _parts(len(weight)) if weight.numel() >= LARGE and weight.is_contiguous() else 1
    if parts == 1:
        return F.linear(word, weight, bias)
    matrices = weight.view(parts, -1, weight.shape[1]).transpose(1, 2)
    several = word.view(1, 1, -1).expand(parts, 1, -1)
    found = torch.bmm(several, matrices) if bias is None else torch.baddbmm(bias.view(parts, 1, -1), several, matrices)
    return found.view(*word.shape[:-1], len(weight))


@lru_cache
def _parts(rows: int) -> int:
    """Into how many equal parts so many rows are cut; 1: they cannot be."""
    return next((parts for parts in (8, 4, *range(2, 64)) if rows % parts == 0), 1)


def in_columns(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same for rows (B, D), left as the product W xᵀ leaves it: (B, V) whose columns lie together in memory."""
    columns = hidden.t()
    return (weight @ columns if bias is None else torch.addmm(bias[:, None], weight, columns)).t()


class Linear(nn.Linear):
    """nn.Linear through `linear`.

    Layers may go in one (`fused_qkv`, `activated`), but for those that a forward hook was ever put on, or whose
    `forward` was replaced. Hooks on all modules of torch at once are not asked for.
    """

    hooked = False  # somebody wants to see what goes in or comes out of this layer alone

    def forward(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.weight, self.bias)

    def register_forward_pre_hook(self, *given: Any, **options: Any) -> RemovableHandle:
        self.hooked = True
        return super().register_forward_pre_hook(*given, **options)

    def register_forward_hook(self, *given: Any, **options: Any) -> RemovableHandle:
        self.hooked = True
        return super().register_forward_hook(*given, **options)


def activated(hidden: Tensor, layer: Any, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """`activation(layer(hidden))`, in one go where our own kernel knows the activation by its name."""
    name = getattr(activation, "name", None)
    if name is not None and _in_one_go(hidden, layer):
        return kernels.linear(hidden, layer.weight, layer.bias, name)
    return activation(layer(hidden))


def fused_qkv(hidden: Tensor, *layers: Any) -> tuple[Tensor, ...]:
    """What each of some layers of one shape makes of the words, the words read once."""
    if not _in_one_go(hidden, *layers):
        return tuple(layer(hidden) for layer in layers)
    found = kernels.linears(hidden, [layer.weight for layer in layers], [layer.bias for layer in layers])
    return found.chunk(len(layers), dim=-1)


def _in_one_go(hidden: Tensor, *layers: Any) -> bool:
    """Our own kernel does all these layers at once, and nobody looks in between."""
    plain = all(type(layer) is Linear and not layer.hooked and "forward" not in vars(layer) for layer in layers)
    return plain and all(is_worth(hidden, layer.weight) for layer in layers)
