"""softmax(scale · Q Kᵀ) V: for padded batches, for a decoding step over a KV cache, and for unpadded (varlen) batches.

`scaled_dot_product_attention` takes the C form for the few queries of a decoding step and torch's fused kernel
otherwise; `varlen_attention` takes the C form for heads of whole SIMD vectors. A query whose mask allows no key gets
zeros from the C form.
"""

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.dispatch import c_library, check

HEAD_MULTIPLE = 16  # head widths of whole SIMD vectors on every machine: the varlen C form has no tail loop
MAX_DECODE_QUERIES = 8  # queries up to which the C form is faster than torch's kernel


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float,
    is_causal: bool = False,
    cache_rows: Tensor | None = None,
    score_bias: Tensor | None = None,
) -> Tensor:
    """The weighted sums (B, H, T, K) of query (B, H, T, K), key and value (B, H_kv, S, K); H_kv divides H.

    `mask` broadcasts to (B, H, T, S), True = may attend. `is_causal`: query t attends to no key after it; the queries
    are the last T of the S positions. With beams that changed rows, `cache_rows` (B, S) int32 has the row of key and
    value that holds each position of each beam; without it, batch row b is stored in row b. `score_bias` broadcasts
    to (B, H, T, S) and is added to the scaled scores; it has a torch form only.
    """
    _check_cache_rows(query, key, cache_rows)
    queries = query.shape[-2]
    plain = score_bias is None and not (is_causal and queries > 1)
    library = _dispatch_decode(query, key, value, mask, cache_rows) if plain else None
    if library is not None:
        return _decode_c(library, query, key, value, mask, scale, cache_rows)
    _check_what_torch_does_not(query, key, value, mask, score_bias)
    keys = key.shape[-2]
    if cache_rows is not None:
        key, value = gather_cache_rows(key, cache_rows), gather_cache_rows(value, cache_rows)
    # torch's own causal mode, which skips half the work
    square = is_causal and mask is None and score_bias is None and queries == keys
    if is_causal and queries > 1 and not square:
        causal = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(keys - queries)
        mask = causal if mask is None else mask & causal
    if score_bias is not None:
        mask = score_bias if mask is None else score_bias.masked_fill(~mask, -torch.inf)
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        mask,
        is_causal=square and queries > 1,
        scale=scale,
        enable_gqa=query.dim() == 4 and query.shape[1] != key.shape[1],
    )


def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, *, scale: float
) -> Tensor:
    """Attention within each sequence of an unpadded batch: (1, H, T, K) in and out; H_kv divides H.

    Sequence n has the positions cu_seqlens[n] to cu_seqlens[n + 1], at most `max_seqlen`. cu_seqlens is on the CPU.
    """
    _check_cu_seqlens(cu_seqlens, max_seqlen, query, key, value)
    library = _dispatch_varlen(query, key, value)
    if library is not None:
        return _varlen_c(library, query, key, value, cu_seqlens, max_seqlen, scale)
    sequences = torch.arange(len(cu_seqlens) - 1, device=cu_seqlens.device).repeat_interleave(cu_seqlens.diff())
    mask = (sequences[:, None] == sequences[None, :])[None, None].to(query.device)
    return scaled_dot_product_attention(query, key, value, mask, scale=scale)


def varlen_is_fast(hidden: Tensor, head_width: int) -> bool:
    """`varlen_attention` of tensors like this has a C form, so that leaving out padding pays."""
    return head_width % HEAD_MULTIPLE == 0 and c_library(hidden) is not None


def reads_cache_rows(keys: Tensor) -> bool:
    """A decoding step over keys like these reads `cache_rows` itself, so that a KV cache need not copy its rows."""
    return c_library(keys) is not None


def gather_cache_rows(cached: Tensor, cache_rows: Tensor) -> Tensor:
    """Keys or values (R, H, S, K) copied so that every beam has its own row: (B, H, S, K)."""
    if cache_rows.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"cache_rows is {cache_rows.dtype}, wanted int32")
    if cache_rows.numel() and (cache_rows.min() < 0 or cache_rows.max() >= len(cached)):
        raise IndexError(f"cache_rows has rows {cache_rows.min()} to {cache_rows.max()}, wanted 0 to {len(cached) - 1}")
    positions = torch.arange(cache_rows.shape[1], device=cached.device)
    return cached.transpose(1, 2)[cache_rows.long(), positions].transpose(1, 2)


def _check_cache_rows(query: Tensor, key: Tensor, cache_rows: Tensor | None) -> None:
    """Its values are checked by the C form as it reads them, and here for the torch form."""
    if cache_rows is None:
        return
    wanted = (len(query), key.shape[-2])
    if cache_rows.dtype is not torch.int32 or cache_rows.shape != wanted or cache_rows.device != key.device:
        got = f"{cache_rows.dtype} {tuple(cache_rows.shape)} on {cache_rows.device}"
        raise ValueError(f"cache_rows is {got}, wanted int32 {wanted} on {key.device}")


def _check_what_torch_does_not(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, score_bias: Tensor | None
) -> None:
    """Torch divides by the number of key heads, and takes values and masks that do not match the keys."""
    no_heads = query.dim() == 4 and query.shape[1] and not key.shape[1]
    if not query.dim() == key.dim() == value.dim() or key.shape[:-1] != value.shape[:-1] or no_heads:
        got = f"query is {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)}"
        raise ValueError(f"{got}, wanted (B, H, T, K), and for key and value (B, H_kv, S, K) with at least one head")
    for name, part in (("mask", mask), ("score_bias", score_bias)):
        if part is not None and part.device != query.device:
            raise ValueError(f"{name} is on {part.device}, wanted {query.device}")


def _check_cu_seqlens(cu_seqlens: Tensor, max_seqlen: int, query: Tensor, key: Tensor, value: Tensor) -> None:
    if cu_seqlens.dtype is not torch.int64 or cu_seqlens.dim() != 1 or not cu_seqlens.is_cpu or not len(cu_seqlens):
        got = f"{cu_seqlens.dtype} {tuple(cu_seqlens.shape)} on {cu_seqlens.device}"
        raise ValueError(f"cu_seqlens is {got}, wanted int64 (N + 1,) on the CPU")
    bounds = cu_seqlens.tolist()
    lengths = [end - start for start, end in pairwise(bounds)]
    if bounds[0] != 0 or min(lengths, default=0) < 0:
        raise ValueError("cu_seqlens must start at 0 and not fall")
    if max(lengths, default=0) > max_seqlen:
        raise ValueError(f"a sequence has {max(lengths)} positions, more than max_seqlen {max_seqlen}")
    for name, part in (("query", query), ("key", key), ("value", value)):
        if part.dim() != 4 or part.shape[0] != 1 or part.shape[2] != bounds[-1]:
            got = f"{name} is {tuple(part.shape)}"
            raise ValueError(f"{got}, but cu_seqlens ends at {bounds[-1]}; wanted (1, H, {bounds[-1]}, K)")


def _dispatch_decode(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, cache_rows: Tensor | None) -> Any:
    """Few queries, contiguous heads, and a mask that is the same for all heads and queries of a row."""
    shape, cached = query.shape, key.shape
    if len(shape) != 4 or len(cached) != 4 or cached != value.shape or shape[2] > MAX_DECODE_QUERIES:
        return None
    (batch, heads, _, width), (rows, kv_heads, keys, key_width) = shape, cached
    if width != key_width or not heads or not kv_heads or heads % kv_heads or (cache_rows is None and rows != batch):
        return None
    if mask is not None and (mask.dtype is not torch.bool or mask.shape not in ((1, 1, 1, keys), (batch, 1, 1, keys))):
        return None
    if mask is not None and not mask.is_cpu:
        return None
    contiguous = query.stride()[3] == key.stride()[3] == value.stride()[3] == 1
    return c_library(query, key, value) if contiguous else None


def _decode_c(
    library: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    cache_rows: Tensor | None,
) -> Tensor:
    batch, heads, queries, width = query.shape
    rows, kv_heads, keys, _ = key.shape
    if mask is not None:
        mask = mask.reshape(len(mask), keys).contiguous()
    if cache_rows is not None:
        cache_rows = cache_rows.contiguous()
    out = query.new_empty(batch, queries, heads, width)
    check(
        library.attention_decode(
            query.data_ptr(),
            key.data_ptr(),
            value.data_ptr(),
            None if mask is None else mask.data_ptr(),
            None if cache_rows is None else cache_rows.data_ptr(),
            out.data_ptr(),
            batch,
            rows,
            heads,
            heads // kv_heads,
            queries,
            keys,
            width,
            *query.stride()[:3],
            *key.stride()[:3],
            *value.stride()[:3],
            keys if mask is not None and len(mask) > 1 else 0,
            scale,
            torch.get_num_threads(),
        )
    )
    return out.transpose(1, 2)


def _dispatch_varlen(query: Tensor, key: Tensor, value: Tensor) -> Any:
    if query.shape != key.shape or key.shape != value.shape or query.shape[-1] % HEAD_MULTIPLE:
        return None
    contiguous = query.stride(-1) == 1 and key.stride(-1) == 1 and value.stride(-1) == 1
    return c_library(query, key, value) if contiguous else None


def _varlen_c(
    library: Any, query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, scale: float
) -> Tensor:
    _, heads, positions, width = query.shape
    cu_seqlens = cu_seqlens.contiguous()
    out = query.new_empty(1, positions, heads, width)
    check(
        library.attention_varlen(
            query.data_ptr(),
            key.data_ptr(),
            value.data_ptr(),
            out.data_ptr(),
            cu_seqlens.data_ptr(),
            len(cu_seqlens) - 1,
            min(max_seqlen, positions),
            heads,
            width,
            *[part.stride(dimension) for part in (query, key, value) for dimension in (2, 1)],
            scale,
            torch.get_num_threads(),
        )
    )
    return out.transpose(1, 2)
