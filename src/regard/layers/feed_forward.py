"""The position-wise feed-forward network: each word by itself, wider and back."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.linear import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "swish": F.silu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """f(x W₁ + b₁) W₂ + b₂ (Vaswani 2017, 3.3)."""

    def __init__(self, width: int, hidden: int, activation: str = "relu") -> None:
        super().__init__()
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, words: Tensor) -> Tensor:
        return self.contract(self.activation(self.expand(words)))
