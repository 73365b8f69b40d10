"""What a forward pass costs: the terms that the formulas of the models share.

A formula counts the multiply-adds of matrix products; one multiply-add is two FLOPs. A test holds every model's formula
against the products that torch counts.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ForwardCost:
    """The cost of a forward pass over one row of a batch."""

    multiply_adds: float
    attention_weights: float = 0  # of all layers and heads, when they are written out
    state_numbers: float = 0  # that decoding carries from step to step: the KV cache, or a recurrent state

    def __add__(self, other: "ForwardCost") -> "ForwardCost":
        return ForwardCost(
            self.multiply_adds + other.multiply_adds,
            self.attention_weights + other.attention_weights,
            self.state_numbers + other.state_numbers,
        )


def self_attention(tokens: int, width: int) -> int:
    """Query, key, value and output projections, scores, and weighted sums."""
    return 4 * tokens * width**2 + 2 * tokens**2 * width


def cross_attention(queries: int, keys: int, width: int, memory_width: int | None = None) -> int:
    """The same for queries of one sequence and keys and values of another, whose width may differ."""
    projections = 2 * queries * width**2 + 2 * keys * (memory_width or width) * width
    return projections + 2 * queries * keys * width


def feed_forward(tokens: int, width: int, inner: int) -> int:
    """Two matrices; a gated network has half as many more."""
    return 2 * tokens * width * inner


def block(tokens: int, width: int, inner: int) -> int:
    """A Transformer block: self-attention and feed-forward."""
    return self_attention(tokens, width) + feed_forward(tokens, width, inner)
