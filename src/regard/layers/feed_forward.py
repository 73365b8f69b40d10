"""The position-wise feed-forward network: each position by itself, wider and back."""

from collections.abc import Callable

from torch import Tensor, nn

from regard.layers.linear import Linear, linear_then_activation
from regard.ops.activation import TORCH_ACTIVATIONS, activate


class Activation:
    """An activation function by its name, so that it can be fused with the product before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, hidden: Tensor) -> Tensor:
        return activate(hidden, self.name)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {name: Activation(name) for name in TORCH_ACTIVATIONS}


class FeedForward(nn.Module):
    """f(x W₁ + b₁) W₂ + b₂ (Vaswani 2017, 3.3); T5 leaves out the biases."""

    def __init__(self, width: int, inner: int, activation: str = "relu", *, bias: bool = True) -> None:
        super().__init__()
        self.expand = Linear(width, inner, bias=bias)
        self.contract = Linear(inner, width, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, hidden: Tensor) -> Tensor:
        return self.contract(linear_then_activation(hidden, self.expand, self.activation))


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
        gate, value = self.expand(hidden).chunk(2, dim=-1)
        return self.contract(self.activation(gate) * value)
