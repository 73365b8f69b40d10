"""Linear layers, alone and several in one pass."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from regard.ops.linear import fused_linears, linear


class Linear(nn.Linear):
    """nn.Linear through `ops.linear`.

    Several layers may be computed in one pass (`fused_qkv`, `linear_then_activation`), except those that ever had a
    forward hook or whose `forward` was replaced. Global module hooks of torch do not see layers computed in one pass.
    """

    hooked = False  # this layer ever had a forward hook

    def forward(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.weight, self.bias)

    def register_forward_pre_hook(self, *given: Any, **options: Any) -> RemovableHandle:
        self.hooked = True
        return super().register_forward_pre_hook(*given, **options)

    def register_forward_hook(self, *given: Any, **options: Any) -> RemovableHandle:
        self.hooked = True
        return super().register_forward_hook(*given, **options)


def linear_then_activation(hidden: Tensor, layer: Any, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """`activation(layer(hidden))`, in one pass where the activation has a name that `ops.linear` knows."""
    name = getattr(activation, "name", None)
    if name is not None and _may_fuse(layer):
        found = fused_linears(hidden, [layer.weight], [layer.bias], name)
        if found is not None:
            return found
    return activation(layer(hidden))


def fused_qkv(hidden: Tensor, *layers: Any) -> tuple[Tensor, ...]:
    """The output of each of several layers of one shape, in one pass over the input."""
    if _may_fuse(*layers):
        found = fused_linears(hidden, [layer.weight for layer in layers], [layer.bias for layer in layers])
        if found is not None:
            return found.chunk(len(layers), dim=-1)
    return tuple(layer(hidden) for layer in layers)


def _may_fuse(*layers: Any) -> bool:
    return all(type(layer) is Linear and not layer.hooked and "forward" not in vars(layer) for layer in layers)
