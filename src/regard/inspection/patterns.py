"""What a head does, in one word: the pattern of its attention weights; and attention rollout."""

from collections.abc import Sequence

import numpy as np

# name -> what it means, in the order of the atlas
PATTERNS = {
    "previous": "most weight on the token before",
    "next": "most weight on the token after",
    "diagonal": "most weight on the same position",
    "first": "most weight on the first token",
    "separator": "most weight on special tokens but the first",
    "focused": "most weight on one token, of no fixed place",
    "broad": "the weight is spread over many tokens",
}
SHARE = 0.5  # of the weight that makes a pattern


def head_pattern(weights: np.ndarray, special: np.ndarray | None = None, *, square: bool = True) -> str:
    """The pattern of one head, weights (queries, keys); `special` says which keys are special tokens.

    Rows without any weight (padding) do not count. Where queries and keys are not the same tokens (`square` is False),
    there is no previous and no next token.
    """
    rows = weights[weights.sum(-1) > 0]
    if not len(rows):
        return "broad"
    shares: dict[str, float] = {}
    if square and len(weights) > 1:
        shares["previous"] = float(np.mean(np.diagonal(weights, -1)))
        shares["next"] = float(np.mean(np.diagonal(weights, 1)))
        shares["diagonal"] = float(np.mean(np.diagonal(weights)[1:]))
    shares["first"] = float(rows[1:, 0].mean()) if len(rows) > 1 else 0.0
    if special is not None and special[1:].any():
        shares["separator"] = float(rows[:, 1:][:, special[1:]].sum(-1).mean())
    best = max(shares, key=lambda name: shares[name])
    if shares[best] >= SHARE:
        return best
    return "focused" if float(rows.max(-1).mean()) >= SHARE else "broad"


def entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row of weights (…, queries, keys), in bits: 0 for one key, log₂ n for n alike."""
    found: np.ndarray = -(weights * np.log2(np.clip(weights, 1e-12, None))).sum(-1)
    return found


def rollout(layers: Sequence[np.ndarray]) -> np.ndarray:
    """Attention rollout (Abnar & Zuidema 2020): how much of each input token reaches each position of the last layer.

    Each layer is the mean over heads of its weights (heads, T, T), half of it the residual connection; the layers are
    multiplied in their order.
    """
    size = layers[0].shape[-1]
    found = np.eye(size)
    for weights in layers:
        mixed = 0.5 * weights.mean(0) + 0.5 * np.eye(size)
        found = mixed / mixed.sum(-1, keepdims=True) @ found
    return found
