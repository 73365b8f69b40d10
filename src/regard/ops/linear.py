"""x Wᵀ + b in float32, also of several matrices at once, with an activation, and for the few rows of a decoding step.

One row: torch multiplies a matrix by a vector on one thread; cut into parts, the matrix is read by all of them (22 to
28 instead of 15 to 18 GB/s on two cores). From MIN_ROWS rows on: the C form (benchmarks/bench_ops.py), or, without it,
(W xᵀ)ᵀ, which is 15 to 50 % faster than x Wᵀ up to MAX_TRANSPOSED_ROWS rows.
"""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.activation import C_ACTIVATIONS, NO_ACTIVATION
from regard.ops.dispatch import c_library, check

MIN_ROWS = 8  # rows from which the C form is the fastest
MAX_TRANSPOSED_ROWS = 128  # rows up to which W xᵀ is faster than x Wᵀ
MAX_TRANSPOSED_LOGITS = 512  # the same where the result need not be contiguous
MIN_PARALLEL_SIZE = 2**18  # numbers from which a matrix is worth several threads


def linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear(hidden, weight, bias)`: hidden (…, K), weight (N, K), bias (N,); contiguous."""
    _check_devices(hidden, weight, bias)
    if torch.is_grad_enabled() or not hidden.is_cpu or not _shapes_match(hidden, weight):
        return F.linear(hidden, weight, bias)
    rows = hidden.numel() // weight.shape[1]
    if rows == 1:
        return _linear_in_parts(hidden, weight, bias)
    library = _dispatch(hidden, [weight], [bias])
    if library is not None:
        return _linear_c(library, hidden, [weight], [bias], NO_ACTIVATION)
    if rows > MAX_TRANSPOSED_ROWS:
        return F.linear(hidden, weight, bias)
    product = _linear_transposed(hidden.reshape(rows, weight.shape[1]), weight, bias)
    return product.contiguous().view(*hidden.shape[:-1], len(weight))


def logits(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear`; for few rows (B, D) without gradients the result may be a transposed view, as W xᵀ leaves it."""
    few = hidden.dim() == 2 and 1 < len(hidden) <= MAX_TRANSPOSED_LOGITS
    if not few or torch.is_grad_enabled() or not hidden.is_cpu or not _shapes_match(hidden, weight):
        return linear(hidden, weight, bias)
    library = _dispatch(hidden, [weight], [bias])
    if library is None:
        return _linear_transposed(hidden, weight, bias)
    return _linear_c(library, hidden, [weight], [bias], NO_ACTIVATION)


def fused_linears(
    hidden: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None], activation: str | None = None
) -> Tensor | None:
    """`linear` of matrices of one shape, side by side, and an activation, in one pass: (…, parts · N).

    None where there is no such pass for these tensors: apply the layers one by one.
    """
    if activation is not None and activation not in C_ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}, wanted one of {', '.join(C_ACTIVATIONS)}")
    library = _dispatch(hidden, weights, biases)
    if library is None:
        return None
    which = NO_ACTIVATION if activation is None else C_ACTIVATIONS[activation]
    return _linear_c(library, hidden, weights, biases, which)


def _check_devices(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Torch multiplies by a weight on the meta device as if it had numbers."""
    if weight.device != hidden.device or (bias is not None and bias.device != hidden.device):
        others = f"weight on {weight.device}" + ("" if bias is None else f", bias on {bias.device}")
        raise ValueError(f"hidden is on {hidden.device}, {others}; wanted one device")


def _shapes_match(hidden: Tensor, weight: Tensor) -> bool:
    """Where they do not, torch reports the error; it also takes the empty ones."""
    return weight.dim() == 2 and hidden.dim() > 0 and hidden.shape[-1] == weight.shape[1] > 0


def _dispatch(hidden: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None]) -> Any:
    if not all(_shapes_match(hidden, weight) and weight.shape == weights[0].shape for weight in weights):
        return None
    given = [bias for bias in biases if bias is not None]
    if hidden.numel() // hidden.shape[-1] < MIN_ROWS or any(bias.shape != weights[0].shape[:1] for bias in given):
        return None
    return c_library(hidden, *weights, *given)


def _linear_c(
    library: Any, hidden: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None], activation: int
) -> Tensor:
    rows, inner = weights[0].shape
    # These names keep the copies alive while C reads them.
    hidden, weights = hidden.contiguous(), [weight.contiguous() for weight in weights]
    biases = [None if bias is None else bias.contiguous() for bias in biases]
    out = hidden.new_empty(*hidden.shape[:-1], len(weights) * rows)
    pointers = ctypes.c_void_p * len(weights)
    check(
        library.linear(
            hidden.data_ptr(),
            pointers(*[weight.data_ptr() for weight in weights]),
            pointers(*[None if bias is None else bias.data_ptr() for bias in biases]),
            out.data_ptr(),
            hidden.numel() // inner,
            len(weights),
            rows,
            inner,
            activation,
            torch.get_num_threads(),
        )
    )
    return out


def _linear_in_parts(row: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`linear` of one row, the matrix cut into parts that are multiplied in parallel."""
    parts = _num_parts(len(weight)) if weight.numel() >= MIN_PARALLEL_SIZE and weight.is_contiguous() else 1
    if parts == 1 or (bias is not None and bias.shape != weight.shape[:1]):
        return F.linear(row, weight, bias)
    matrices = weight.view(parts, -1, weight.shape[1]).transpose(1, 2)
    several = row.reshape(1, 1, -1).expand(parts, 1, -1)
    found = torch.bmm(several, matrices) if bias is None else torch.baddbmm(bias.view(parts, 1, -1), several, matrices)
    return found.view(*row.shape[:-1], len(weight))


@lru_cache
def _num_parts(rows: int) -> int:
    """Into how many equal parts so many rows can be cut; 1 if they cannot."""
    return next((parts for parts in (8, 4, *range(2, 64)) if rows % parts == 0), 1)


def _linear_transposed(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`linear` of rows (B, K) as (W xᵀ)ᵀ: (B, N) with contiguous columns."""
    columns = hidden.t()
    return (weight @ columns if bias is None else torch.addmm(bias[:, None], weight, columns)).t()
