"""Exercises of the attention layer."""

import math

import torch
from torch import Tensor

from regard.exercises.exercise import Exercise, Function, seeded
from regard.layers import masks
from regard.layers.attention import attend, attend_written_out


def _rows_sum_to_one(softmax: Function) -> bool:
    (scores,) = seeded((5, 7), seed=9)
    return torch.allclose(softmax(scores).sum(-1), torch.ones(5), atol=1e-5)


def _survives_large_scores(softmax: Function) -> bool:
    found = softmax(torch.tensor([[1000.0, 999.0]]))
    return torch.allclose(found, torch.tensor([[0.7311, 0.2689]]), atol=1e-3)


SOFTMAX = Exercise(
    "softmax",
    "attention-layer",
    "Softmax along the last dimension: every number positive, every row with the sum 1. Do not call "
    "torch.softmax. It must "
    "survive scores of 1,000.",
    "softmax(scores)",
    lambda: [(torch.tensor([[14.0, 12.0, 2.0, 1.0]]),), seeded((3, 4)), seeded((2, 3, 5), seed=1)],
    lambda scores: scores.softmax(-1),
    {
        "the rows are divided by their sum without exp: the quiz's answer (b), 112 / (112 + 96)": lambda scores: (
            scores / scores.sum(-1, keepdim=True)
        ),
        "the sum runs over the first dimension; the weights of one query stand in a row": lambda scores: (
            scores.exp() / scores.exp().sum(0, keepdim=True)
        ),
        "the sum runs over all scores; every row has a softmax of its own": lambda scores: (
            scores.exp() / scores.exp().sum()
        ),
        "exp is taken, but the rows are not divided by their sum": lambda scores: scores.exp(),
    },
    {
        "a score of 1,000 overflows: subtract the largest score of the row first": _survives_large_scores,
        "the rows do not sum to 1": _rows_sum_to_one,
    },
)


def _attention_cases() -> list[tuple[Tensor, ...]]:
    return [seeded((3, 4), (5, 4), (5, 4)), seeded((2, 6, 8), (2, 6, 8), (2, 6, 3), seed=1)]


def _weighted(query: Tensor, key: Tensor, value: Tensor, scale: float, dim: int = -1) -> Tensor:
    return (query @ key.mT * scale).softmax(dim) @ value


def _is_equivariant(attention: Function) -> bool:
    query, key, value = seeded((4, 6), (5, 6), (5, 6), seed=3)
    order = torch.tensor([3, 0, 4, 1, 2])
    return torch.allclose(attention(query, key[order], value[order]), attention(query, key, value), atol=1e-4)


ATTENTION = Exercise(
    "attention",
    "attention-layer",
    "Scaled dot-product attention, softmax(Q Kᵀ / √d) V, for query (…, T, K), key (…, S, K) and value (…, S, "
    "V). Return the "
    "output (…, T, V).",
    "attention(query, key, value)",
    _attention_cases,
    lambda query, key, value: attend_written_out(query, key, value).output,
    {
        "the scores are not divided by √d": lambda q, k, v: _weighted(q, k, v, 1.0),
        "the scores are divided by d, not by √d": lambda q, k, v: _weighted(q, k, v, 1 / q.shape[-1]),
        "the scores are multiplied by √d, not divided": lambda q, k, v: _weighted(q, k, v, math.sqrt(q.shape[-1])),
        "softmax runs over the queries (a column); it runs over the keys (a row)": lambda q, k, v: _weighted(
            q, k, v, q.shape[-1] ** -0.5, dim=-2
        ),
        "the weights are not normalized: softmax is missing": lambda q, k, v: (q @ k.mT / math.sqrt(q.shape[-1])) @ v,
        "√d of the width of the values; it is that of the keys": lambda q, k, v: _weighted(
            q, k, v, v.shape[-1] ** -0.5
        ),
    },
    {"a permutation of keys and values together must change nothing": _is_equivariant},
)


def _masked(scores: Tensor, keep: Tensor) -> Tensor:
    return scores.masked_fill(~keep, -math.inf).softmax(-1)


def _lower(scores: Tensor) -> Tensor:
    return masks.causal_mask(scores.shape[-2], scores.shape[-1], scores.device)


MASK = Exercise(
    "mask",
    "positions-and-masks",
    "Causal attention weights from scores (…, T, T): position t may see the positions 0 to t, itself "
    "included. Each row "
    "sums to 1, and the future has the weight 0.",
    "causal_weights(scores)",
    lambda: [seeded((4, 4)), seeded((2, 3, 6, 6), seed=1), (torch.tensor([[0.5, -1.0], [0.3, 0.2]]),)],
    lambda scores: _masked(scores, _lower(scores)),
    {
        "there is no mask: every position sees the future": lambda scores: scores.softmax(-1),
        "a position cannot see itself: the diagonal belongs to what it may see": lambda scores: _masked(
            scores, _lower(scores).tril(-1)
        ),
        "the mask is turned round: a position sees the future and not the past": lambda scores: _masked(
            scores, _lower(scores).mT
        ),
        "the weights are set to 0 after softmax: the rows no longer sum to 1": lambda scores: (
            scores.softmax(-1) * _lower(scores)
        ),
        "the scores are multiplied by the mask: a score of 0 is not hidden, exp(0) = 1": lambda scores: (
            scores * _lower(scores)
        ).softmax(-1),
        "the scores are multiplied by -inf: a negative score becomes +inf, and softmax NaN": lambda scores: torch.where(
            _lower(scores), scores, scores * -math.inf
        ).softmax(-1),
    },
)


def _heads(hidden: Tensor, heads: int) -> Tensor:
    return hidden.unflatten(-1, (heads, -1)).transpose(-2, -3)


def _multi_head(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    return attend(*(_heads(each, heads) for each in (query, key, value))).transpose(-2, -3).flatten(-2)


def _interleaved(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    split = [each.unflatten(-1, (-1, heads)).movedim(-1, -3) for each in (query, key, value)]
    return attend(*split).movedim(-3, -1).flatten(-2)


def _one_head_scale(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    q, k, v = (_heads(each, heads) for each in (query, key, value))
    return _weighted(q, k, v, query.shape[-1] ** -0.5).transpose(-2, -3).flatten(-2)


def _head_by_head(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    return attend(*(_heads(each, heads) for each in (query, key, value))).flatten(-3, -2).reshape(query.shape)


MULTI_HEAD = Exercise(
    "multi-head",
    "attention-layer",
    "Attention with several heads: query, key and value (B, T, D) are already projected. Split D into heads "
    "of D / heads "
    "numbers each (the first head has the first ones), attend in each, concatenate: (B, T, D).",
    "multi_head(query, key, value, heads)",
    lambda: [(*seeded((2, 5, 8), (2, 5, 8), (2, 5, 8)), 2), (*seeded((1, 4, 12), (1, 4, 12), (1, 4, 12), seed=1), 3)],
    _multi_head,
    {
        "there is one head only: D was not split": lambda q, k, v, heads: _multi_head(q, k, v, 1),
        "the heads take every H-th number; head 0 has the first D / H": _interleaved,
        "the scores are divided by √D; each head has the width D / H": _one_head_scale,
        "the heads stand one below the other: transpose back before they are joined": _head_by_head,
    },
)


def _cross(hidden: Tensor, memory: Tensor, to_query: Tensor, to_key: Tensor, to_value: Tensor) -> Tensor:
    return attend(hidden @ to_query, memory @ to_key, memory @ to_value)


CROSS = Exercise(
    "cross-attention",
    "build-a-transformer",
    "Cross-attention of a decoder (hidden, (B, T, D)) to an encoder (memory, (B, S, D)) with the matrices "
    "to_query, to_key "
    "and to_value (D, K): each target position looks at the source. Return (B, T, K).",
    "cross_attention(hidden, memory, to_query, to_key, to_value)",
    lambda: [
        seeded((2, 3, 6), (2, 3, 6), (6, 4), (6, 4), (6, 4)),
        seeded((1, 5, 8), (1, 5, 8), (8, 8), (8, 8), (8, 8), seed=1),
    ],
    _cross,
    {
        "the decoder attends to itself: keys and values come from the memory": lambda h, m, q, k, v: _cross(
            h, h, q, k, v
        ),
        "queries and memory are exchanged: queries come from the decoder": lambda h, m, q, k, v: _cross(m, h, q, k, v),
        "the values come from the decoder; they come from the memory, as the keys do": lambda h, m, q, k, v: attend(
            h @ q, m @ k, h @ v
        ),
        "the scores are not divided by √d": lambda h, m, q, k, v: _weighted(h @ q, m @ k, m @ v, 1.0),
    },
)


def _step(query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return attend(query, torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2))


KV_CACHE = Exercise(
    "kv-cache",
    "build-a-transformer",
    "One decoding step with a KV cache: query, key and value (B, 1, K) of the new token, keys and values (B, "
    "T, K) of those "
    "before it. The new token attends to all of them and to itself. Return (B, 1, K).",
    "decode_step(query, key, value, keys, values)",
    lambda: [
        seeded((2, 1, 4), (2, 1, 4), (2, 1, 4), (2, 5, 4), (2, 5, 4)),
        seeded((1, 1, 8), (1, 1, 8), (1, 1, 8), (1, 1, 8), (1, 1, 8), seed=1),
    ],
    _step,
    {
        "the new token does not see itself: its key and value belong to the cache": lambda q, k, v, ks, vs: attend(
            q, ks, vs
        ),
        "the cache is not used: the new token sees itself alone": lambda q, k, v, ks, vs: attend(q, k, v),
        "keys and values stand in different orders: append both at the same end": lambda q, k, v, ks, vs: attend(
            q, torch.cat([ks, k], dim=-2), torch.cat([v, vs], dim=-2)
        ),
        "the scores are not divided by √d": lambda q, k, v, ks, vs: _weighted(
            q, torch.cat([ks, k], dim=-2), torch.cat([vs, v], dim=-2), 1.0
        ),
    },
)

ALL = {one.name: one for one in (SOFTMAX, ATTENTION, MASK, MULTI_HEAD, CROSS, KV_CACHE)}
