"""Top-k, argmax and logsumexp of logits (B, V), fast in either memory layout.

The logits of a decoding step are contiguous in rows, or, as a product W xᵀ leaves them, in columns. Each function gives
what its one-line torch form gives and reads memory in the order in which it lies. Contiguous rows go to the C form.
"""

from typing import Any

import torch
from torch import Tensor

from regard.ops.dispatch import c_library

MAX_C_K = 64  # the C form inserts into a sorted list, which is for a short one
BLOCK = 1024  # columns reduced at a time, so that they stay in the cache
TOPK_BLOCK = 128  # columns of which only the maximum is compared first


def logsumexp(logits: Tensor) -> Tensor:
    """`logits.logsumexp(-1)`; where a logit is NaN or +inf the result is not finite."""
    _check_shape(logits)
    library = _dispatch(logits)
    if library is not None:
        totals = logits.new_empty(len(logits))
        library.logsumexp(
            logits.data_ptr(), *logits.shape, logits.stride(0), totals.data_ptr(), torch.get_num_threads()
        )
        return totals
    if has_contiguous_columns(logits):
        return torch.stack([block.logsumexp(0) for block in logits.t().split(BLOCK)]).logsumexp(0)
    return torch.cat([rows.logsumexp(-1) for rows in logits.split(8)])


def argmax(logits: Tensor) -> Tensor:
    """`logits.argmax(-1)`."""
    _check_shape(logits)
    library = _dispatch(logits)
    if library is not None and logits.shape[1]:
        return _topk_c(library, logits, 1)[1][:, 0]
    if not has_contiguous_columns(logits):
        return logits.argmax(-1)
    columns = logits.t()  # (V, B)
    best = torch.stack([block.amax(0) for block in columns.split(BLOCK)]).argmax(0)  # (B,) the block it is in
    ids = torch.arange(BLOCK, device=logits.device)[:, None] + best * BLOCK
    inside = columns.gather(0, ids.clamp(max=len(columns) - 1))  # the last block may be shorter
    return best * BLOCK + inside.argmax(0)


def topk(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`logits.topk(k)`: values and indices (B, k), the largest first."""
    _check_shape(logits)
    vocab_size = logits.shape[1]
    if not 0 <= k <= vocab_size:
        raise ValueError(f"k is {k}, wanted 0 to {vocab_size}")
    library = _dispatch(logits) if 0 < k <= MAX_C_K else None
    if library is not None:
        return _topk_c(library, logits, k)
    if not k or vocab_size < 4 * TOPK_BLOCK * k or vocab_size % TOPK_BLOCK:
        values, indices = logits.topk(k, dim=-1)
        return values, indices
    if has_contiguous_columns(logits):
        highest = logits.t().unflatten(0, (-1, TOPK_BLOCK)).amax(1).t()  # (B, V / TOPK_BLOCK)
    else:
        highest = logits.unflatten(-1, (-1, TOPK_BLOCK)).amax(-1)
    blocks = highest.topk(k, dim=-1).indices  # (B, k): the k largest are in the k blocks with the highest maxima
    ids = (blocks[..., None] * TOPK_BLOCK + torch.arange(TOPK_BLOCK, device=logits.device)).flatten(1)
    values, indices = logits.gather(1, ids).topk(k, dim=-1)
    return values, ids.gather(1, indices)


def has_contiguous_columns(logits: Tensor) -> bool:
    """The logits of one id, of all rows, are adjacent in memory."""
    return logits.shape[0] > 1 and logits.stride(0) == 1


def _check_shape(logits: Tensor) -> None:
    if logits.dim() != 2:
        raise ValueError(f"logits are {tuple(logits.shape)}, wanted (B, V)")


def _dispatch(logits: Tensor) -> Any:
    return c_library(logits) if logits.stride(1) == 1 else None


def _topk_c(library: Any, logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Of equal logits the first; NaN above all, as in torch."""
    values = logits.new_empty(len(logits), k)
    indices = values.new_empty(values.shape, dtype=torch.long)
    library.topk(
        logits.data_ptr(),
        *logits.shape,
        logits.stride(0),
        k,
        values.data_ptr(),
        indices.data_ptr(),
        torch.get_num_threads(),
    )
    return values, indices
