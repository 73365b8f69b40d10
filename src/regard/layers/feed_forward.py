"""The position-wise feed-forward network: each word by itself, wider and back."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from regard import kernels
from regard.layers.linear import Linear, activated


class Activation:
    """A function of each number; by our own kernel where there is one, both ways."""

    def __init__(self, name: str, plain: Callable[[Tensor], Tensor]) -> None:
        self.name, self.plain = name, plain

    def __call__(self, words: Tensor) -> Tensor:
        ours = self.name in kernels.ACTIVATIONS and kernels.takes(words)
        return _Activated.apply(words, self.name) if ours else self.plain(words)


class _Activated(Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, name: str) -> Tensor:
        ctx.save_for_backward(words)
        ctx.name = name
        return kernels.activate(words, name)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        (words,) = ctx.saved_tensors
        return kernels.activation_gradient(words, outer, ctx.name), None


swish = Activation("swish", F.silu)
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": Activation("relu", F.relu),
    "swish": swish,
    "gelu": Activation("gelu", F.gelu),
    "gelu_tanh": Activation("gelu_tanh", partial(F.gelu, approximate="tanh")),  # GPT-2's
}


class FeedForward(nn.Module):
    """f(x W₁ + b₁) W₂ + b₂ (Vaswani 2017, 3.3)."""

    def __init__(self, width: int, hidden: int, activation: str = "relu") -> None:
        super().__init__()
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, words: Tensor) -> Tensor:
        return self.contract(activated(words, self.expand, self.activation))


class GatedFeedForward(nn.Module):
    """(swish(x W₁) · x W₂) W₃: one half says how much of the other passes (Shazeer 2020). W₁, W₂ are one matrix."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.expand = Linear(width, 2 * hidden, bias=False)
        self.contract = Linear(hidden, width, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        gate, passing = self.expand(words).chunk(2, dim=-1)
        return self.contract(swish(gate) * passing)
