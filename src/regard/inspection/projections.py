"""W_Q, W_K and W_V of one head of an attention, from the parameters of the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from regard.errors import InputError
from regard.layers.attention import MultiHeadAttention, SelfAttention

PROJECTING = (MultiHeadAttention, SelfAttention)  # attentions that project queries, keys and values


@dataclass(frozen=True)
class Projection:
    """The weight (D, K) and the bias (K,) with which one head makes its queries, keys or values from X (T, D)."""

    weight: np.ndarray
    bias: np.ndarray | None

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """X W + b."""
        found: np.ndarray = inputs @ self.weight
        return found if self.bias is None else found + self.bias


def projections(attention: nn.Module, head: int) -> tuple[Projection, Projection, Projection]:
    """W_Q, W_K and W_V of one head; in grouped-query attention, the key and value that it shares with others."""
    if isinstance(attention, SelfAttention):
        width, shared = attention.head_width, head * attention.num_kv_heads // attention.heads
        places = (head, attention.heads + shared, attention.heads + attention.num_kv_heads + shared)
        query, key, value = (_rows(attention.project, place, width) for place in places)
        return query, key, value
    assert isinstance(attention, MultiHeadAttention), f"{type(attention).__name__} has no projections"
    width = attention.query.out_features // attention.heads
    query, key, value = (_rows(one, head, width) for one in (attention.query, attention.key, attention.value))
    return query, key, value


def _rows(layer: Any, place: int, width: int) -> Projection:
    """The rows of a linear layer that make one head."""
    if not isinstance(layer, nn.Linear):
        raise InputError("this model's weights are in int8; load it without --precision int8")
    rows = slice(place * width, (place + 1) * width)
    return Projection(_numbers(layer.weight[rows]).T, None if layer.bias is None else _numbers(layer.bias[rows]))


def _numbers(value: Tensor) -> np.ndarray:
    found: np.ndarray = value.detach().float().cpu().numpy()
    return found
