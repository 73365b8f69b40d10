"""The position-wise feed-forward network: each word by itself, wider and back."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from regard import kernels
from regard.layers.linear import Linear


def gelu(words: Tensor) -> Tensor:
    """`F.gelu`, BERT's; with our own kernel some times as fast, both ways."""
    return _Gelu.apply(words, False) if kernels.takes(words) else F.gelu(words)


def gelu_tanh(words: Tensor) -> Tensor:
    """`F.gelu(words, approximate="tanh")`, GPT-2's."""
    return _Gelu.apply(words, True) if kernels.takes(words) else F.gelu(words, approximate="tanh")


class _Gelu(Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, by_tanh: bool) -> Tensor:
        ctx.save_for_backward(words)
        ctx.by_tanh = by_tanh
        return kernels.gelu(words, by_tanh)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        (words,) = ctx.saved_tensors
        return kernels.gelu_gradient(words, outer, ctx.by_tanh), None


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
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
