"""The position-wise feed-forward network: each word by itself, wider and back."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.linear import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's
}


class FeedForward(nn.Module):
    """f(x W₁ + b₁) W₂ + b₂ (Vaswani 2017, 3.3)."""

    def __init__(self, width: int, hidden: int, activation: str = "relu") -> None:
        super().__init__()
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, words: Tensor) -> Tensor:
        return self.contract(self.activation(self.expand(words)))


class GatedFeedForward(nn.Module):
    """(swish(x W₁) · x W₂) W₃: one half says how much of the other passes (Shazeer 2020). W₁, W₂ are one matrix."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.expand = Linear(width, 2 * hidden, bias=False)
        self.contract = Linear(hidden, width, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        gate, passing = self.expand(words).chunk(2, dim=-1)
        return self.contract(F.silu(gate) * passing)
