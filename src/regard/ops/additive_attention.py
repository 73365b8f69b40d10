"""One step of additive attention, forward and backward (Bahdanau 2015, A.1.2), for the loop of ops/gru_scan.py.

    e_i = v · tanh(q + k_i)        a = softmax(e) over the keys that the mask allows        c = Σ a_i h_i

The C form makes one pass over the keys; it does not store tanh, the largest tensor of a step, but computes it again in
the backward pass. Its rows are independent. A query whose mask allows no key gets zeros.
"""

import torch
from torch import Tensor

from regard.ops.dispatch import c_library


def forward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, score: Tensor, weights: Tensor, context: Tensor
) -> None:
    """Write the weights (B, S) and the context (B, D) of queries (B, K), keys (B, S, K), values (B, S, D), v (K,)."""
    library = c_library(query, key, value, score, weights, context, has_backward=True)
    if library is None:
        closed = ((query[:, None] + key).tanh() @ score).masked_fill(~mask, -torch.inf)
        weights.copy_(closed.softmax(-1).masked_fill(~mask, 0.0))
        torch.bmm(weights[:, None], value, out=context[:, None])
        return
    library.additive_attention(
        query.data_ptr(),
        key.data_ptr(),
        value.data_ptr(),
        mask.data_ptr(),
        score.data_ptr(),
        weights.data_ptr(),
        context.data_ptr(),
        *key.shape,
        value.shape[-1],
        torch.get_num_threads(),
    )


def backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    score: Tensor,
    weights: Tensor,
    outer: Tensor,
    by_key: Tensor,
    by_score: Tensor,
) -> Tensor:
    """The gradient by the query (B, K), from that by the context, `outer` (B, D).

    Adds the gradient by the keys to `by_key` (B, S, K), and by v, of each row, to `by_score` (B, K).
    """
    library = c_library(query, key, value, score, weights, outer, by_key, by_score, has_backward=True)
    if library is None:
        pairs = (query[:, None] + key).tanh()
        by_weights = torch.bmm(value, outer[..., None]).squeeze(-1)  # (B, S)
        by_scores = weights * (by_weights - (weights * by_weights).sum(-1, keepdim=True))
        # A key that the mask excludes gets no gradient, also where others are not finite.
        slope = ((1 - pairs * pairs) * score * by_scores[..., None]).masked_fill(~mask[..., None], 0.0)
        by_key += slope
        by_score += torch.bmm(by_scores[:, None], pairs).squeeze(1)
        return slope.sum(1)
    by_query, by_scores = torch.empty_like(query), torch.empty_like(weights)
    library.additive_attention_back(
        query.data_ptr(),
        key.data_ptr(),
        value.data_ptr(),
        mask.data_ptr(),
        score.data_ptr(),
        weights.data_ptr(),
        outer.data_ptr(),
        by_query.data_ptr(),
        by_key.data_ptr(),
        by_score.data_ptr(),
        by_scores.data_ptr(),
        *key.shape,
        value.shape[-1],
        torch.get_num_threads(),
    )
    return by_query
