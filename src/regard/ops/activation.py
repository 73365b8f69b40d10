"""Activation functions: elementwise, forward and backward."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from regard.ops.dispatch import c_library

C_ACTIVATIONS = {"gelu": 0, "gelu_tanh": 1, "swish": 2, "relu": 3}  # the enum of csrc/activation.h
NO_ACTIVATION = 4
IN_TORCH = ("relu",)  # torch's own is as fast; the C form exists only fused after a matrix product
TORCH_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's
}


def activate(hidden: Tensor, name: str) -> Tensor:
    """The activation `name` of each number; any shape, differentiable once."""
    if name not in TORCH_ACTIVATIONS:
        raise ValueError(f"activation is {name!r}, wanted one of {', '.join(TORCH_ACTIVATIONS)}")
    if name not in IN_TORCH and c_library(hidden, has_backward=True) is not None:
        return _Activate.apply(hidden, name)
    return TORCH_ACTIVATIONS[name](hidden)


class _Activate(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, name: str) -> Tensor:
        ctx.save_for_backward(hidden)
        ctx.name = name
        hidden = hidden.contiguous()
        out = torch.empty_like(hidden)
        c_library(hidden, has_backward=True).activation_forward(
            hidden.data_ptr(), out.data_ptr(), hidden.numel(), C_ACTIVATIONS[name], torch.get_num_threads()
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        (hidden,) = ctx.saved_tensors
        return _gradient(hidden, outer, ctx.name), None


def _gradient(hidden: Tensor, outer: Tensor, name: str) -> Tensor:
    """The gradient by `hidden`, given the gradient `outer` by `activate(hidden, name)`."""
    library = c_library(hidden, outer, has_backward=True)
    if library is None:
        with torch.enable_grad():
            hidden = hidden.detach().requires_grad_()
            return torch.autograd.grad(TORCH_ACTIVATIONS[name](hidden), hidden, outer)[0]
    hidden, outer = hidden.contiguous(), outer.contiguous()
    out = torch.empty_like(hidden)
    library.activation_backward(
        hidden.data_ptr(),
        outer.data_ptr(),
        out.data_ptr(),
        hidden.numel(),
        C_ACTIVATIONS[name],
        torch.get_num_threads(),
    )
    return out
