"""The distribution that a token is sampled from: logits at a temperature, without the tail that top-k and top-p cut."""

import torch
from torch import Tensor

from regard.ops.topk import logsumexp, topk

NUCLEUS_TOPK = 1024  # tokens that mostly make up a nucleus; all are sorted only where they do not
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-30, 1e30  # what float32 can divide by; beyond them nothing changes


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Logits (B, V) divided by the temperature, the largest of each row at 0."""
    # Less the maximum, so that no positive number is divided: a low temperature cannot overflow.
    temperature = min(max(temperature, MIN_TEMPERATURE), MAX_TEMPERATURE)
    return (logits - logits.amax(-1, keepdim=True)) / temperature


def cut_tail(logits: Tensor, top_k: int | None, top_p: float) -> tuple[Tensor, Tensor]:
    """Probabilities and ids (B, N) of tokens, the most probable first; 0 for what top-p cuts, without what top-k cuts.

    With top-k the probabilities are those among the k tokens that are kept, and top-p is a share of them.
    """
    logits, tokens = _sorted(logits, top_k, top_p)
    probabilities = logits.softmax(-1) if top_k is not None else logits.exp()
    if top_p < 1.0:  # rounding lets a sum reach 1 before its last terms
        # A token is kept while those before it do not reach top_p: the first is always kept.
        probabilities[probabilities.cumsum(-1) - probabilities >= top_p] = 0.0
    return probabilities, tokens


def kept_ids(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """The ids that sampling may choose for logits (V,), the most probable first."""
    probabilities, tokens = cut_tail(apply_temperature(logits[None], temperature), top_k, top_p)
    return tokens[0, probabilities[0] > 0]


def _sorted(logits: Tensor, top_k: int | None, top_p: float) -> tuple[Tensor, Tensor]:
    """The log probabilities and ids of the tokens that may be kept, the most probable first."""
    logits = logits - logsumexp(logits)[:, None]
    if top_k is not None:
        return topk(logits, min(top_k, logits.shape[-1]))
    if logits.shape[-1] > 4 * NUCLEUS_TOPK:
        values, tokens = topk(logits, NUCLEUS_TOPK)
        if (values.exp().sum(-1) >= top_p).all():
            return values, tokens
    ordered = torch.sort(logits, -1, descending=True)
    return ordered.values, ordered.indices
