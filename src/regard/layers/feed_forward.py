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

    def __call__(self, hidden: Tensor) -> Tensor:
        ours = self.name in kernels.ACTIVATIONS and kernels.takes(hidden)
        return _Activated.apply(hidden, self.name) if ours else self.plain(hidden)


class _Activated(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, name: str) -> Tensor:
        ctx.save_for_backward(hidden)
        ctx.name = name
        return kernels.activate(hidden, name)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        (hidden,) = ctx.saved_tensors
        return kernels.activation_gradient(hidden, outer, ctx.name), None


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": Activation("relu", F.relu),
    "swish": Activation("swish", F.silu),
    "gelu": Activation("gelu", F.gelu),
    "gelu_tanh": Activation("gelu_tanh", partial(F.gelu, approximate="tanh")),  # GPT-2's
}


class FeedForward(nn.Module):
    """f(x W₁ + b₁) W₂ + b₂ (Vaswani 2017, 3.3); T5 leaves out the biases."""

    def __init__(self, width: int, inner: int, activation: str = "relu", *, bias: bool = True) -> None:
        super().__init__()
        self.expand = Linear(width, inner, bias=bias)
        self.contract = Linear(inner, width, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, hidden: Tensor) -> Tensor:
        return self.contract(activated(hidden, self.expand, self.activation))


class GatedFeedForward(nn.Module):
    """(f(x W₁) · x W₂) W₃: one half gates the other (Shazeer 2020). W₁ and W₂ are one matrix.

    f is swish in Llama (SwiGLU), GELU in T5 v1.1 (GEGLU).
    """

    def __init__(self, width: int, inner: int, activation: str = "swish") -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.expand = Linear(width, 2 * inner, bias=False)
        self.contract = Linear(inner, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        gate, passing = self.expand(hidden).chunk(2, dim=-1)
        return self.contract(self.activation(gate) * passing)
