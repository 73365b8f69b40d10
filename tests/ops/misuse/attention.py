"""Right uses of the attention ops."""

from typing import Any

import torch
from torch import Tensor

from regard.ops.attention import gather_cache_rows, scaled_dot_product_attention, varlen_attention
from tests.ops.forms import numbers
from tests.ops.misuse.judging import Arguments, Op


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Any = None, *, scale: float, cache_rows: Any = None, **further: Any
) -> Tensor:
    if cache_rows is not None:
        key, value = (plain_gather(part, cache_rows) for part in (key, value))
    if key.shape[1] != query.shape[1]:
        key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], 1) for part in (key, value))
    return written_out(query, key, value, mask, scale, **further)


def written_out(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, scale: float, is_causal: bool = False, score_bias: Any = None
) -> Tensor:
    """Torch's fused kernel gives zeros for a query of NaN; written out, damage stays visible."""
    scores = scale * query @ key.transpose(-1, -2)
    if score_bias is not None:
        scores = scores + score_bias
    if is_causal:
        queries, keys = scores.shape[-2:]
        causal = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        mask = causal if mask is None else mask & causal
    if mask is None:
        return scores.softmax(-1) @ value
    if mask.dtype is not torch.bool:
        return (scores + mask).softmax(-1) @ value
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0) @ value  # no key at all: zeros


def plain_gather(cached: Tensor, cache_rows: Tensor) -> Tensor:
    if cache_rows.dtype not in (torch.int32, torch.int64) or (cache_rows < 0).any():
        raise IndexError("rows are not negative")
    rows, positions = cached.transpose(1, 2), torch.arange(cache_rows.shape[1])
    return rows[cache_rows.long(), positions].transpose(1, 2)


def plain_varlen(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, *, scale: float
) -> Tensor:
    bounds = cu_seqlens.tolist()
    if any(len(part) != 1 for part in (query, key, value)):
        raise ValueError("not one row")
    if bounds[0] != 0 or bounds[-1] != query.shape[2] or bounds != sorted(bounds):
        raise ValueError("no bounds of these sequences")
    if cu_seqlens.dtype is not torch.int64 or max(cu_seqlens.diff().tolist(), default=0) > max_seqlen:
        raise ValueError("no bounds of these sequences")
    lengths = cu_seqlens.diff().tolist()
    parts = zip(*(part.split(lengths, dim=2) for part in (query, key, value)), strict=True)
    alone = [plain_attention(*one, scale=scale) for one in parts]
    return torch.cat(alone, dim=2) if alone else query.clone()


def decode_use(batch: int, heads: int, group: int, keys: int, width: int, queries: int = 1, **further: Any) -> Any:
    def made() -> Arguments:
        return {
            "query": numbers(batch, queries, heads * group, width).transpose(1, 2),
            "key": numbers(batch, keys, heads, width, seed=1).transpose(1, 2),
            "value": numbers(batch, keys, heads, width, seed=2).transpose(1, 2),
            "mask": (numbers(batch, 1, 1, keys, seed=3) > -1) | (torch.arange(keys) == 0),
            "cache_rows": ((numbers(batch, keys, seed=4).abs() * 7).int() % batch).int(),
            "scale": 0.3,
        } | further

    return made


def varlen_use(lengths: list[int], heads: int, width: int) -> Any:
    def made() -> Arguments:
        parts = [numbers(1, sum(lengths), heads, width, seed=seed).transpose(1, 2) for seed in range(3)]
        bounds = torch.tensor([0, *lengths]).cumsum(0)
        names = dict(zip(("query", "key", "value"), parts, strict=True))
        return names | {"cu_seqlens": bounds, "max_seqlen": max(lengths, default=0), "scale": 0.25}

    return made


PLAIN_STEP = {"mask": None, "cache_rows": None}
ATTENTION = [
    Op(
        "scaled_dot_product_attention",
        scaled_dot_product_attention,
        plain_attention,
        [
            decode_use(3, 2, 2, 5, 24),
            decode_use(2, 1, 1, 1, 1),
            decode_use(2, 3, 1, 17, 33, 8, cache_rows=None),
            decode_use(1, 2, 3, 40, 70, 2, mask=None),
            decode_use(2, 2, 1, 9, 64, **PLAIN_STEP),
            decode_use(2, 2, 1, 9, 8, 9, **PLAIN_STEP),
            decode_use(2, 2, 1, 9, 8, 3, **PLAIN_STEP, is_causal=True),
            decode_use(2, 2, 1, 9, 8, 3, **PLAIN_STEP, score_bias=numbers(1, 2, 3, 9, seed=5)),
        ],
        {"scale": [0.0, -1.0, torch.nan, 1e30], "mask": [None], "cache_rows": [None]},
    ),
    Op(
        "scaled_dot_product_attention without cache rows",
        scaled_dot_product_attention,
        plain_attention,
        [decode_use(3, 2, 2, 5, 24, cache_rows=None), decode_use(3, 2, 2, 5, 7, 4, **PLAIN_STEP)],
    ),
    Op(
        "varlen_attention",
        varlen_attention,
        plain_varlen,
        [
            varlen_use([4, 0, 7, 1], 2, 32),
            varlen_use([1], 1, 16),
            varlen_use([33, 70], 3, 48),
            varlen_use([5, 6], 2, 24),
            varlen_use([5, 6], 2, 7),
            varlen_use([0, 0], 2, 16),
            varlen_use([], 2, 16),
        ],
        {"max_seqlen": [0, 6, -1, 2**40, 8], "scale": [torch.nan, 0.0]},
    ),
    Op(
        "gather_cache_rows",
        gather_cache_rows,
        plain_gather,
        [
            lambda: {
                "cached": numbers(3, 2, 5, 7),
                "cache_rows": ((numbers(4, 5, seed=1).abs() * 7).int() % 3).int(),
            }
        ],
    ),
]
