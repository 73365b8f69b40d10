"""Calls an op together with its backward pass."""

from typing import Any

import torch
from torch import Tensor

from tests.ops.forms import numbers


def with_gradients(function: Any) -> Any:
    """The function's results, and the gradients of their sum by every floating argument, each times other numbers."""

    def both(**arguments: Any) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            leaves = {
                name: value.detach().requires_grad_()
                for name, value in arguments.items()
                if isinstance(value, Tensor) and value.is_floating_point()
            }
            results = function(**arguments | leaves)
            results = results if isinstance(results, tuple) else (results,)
            outer = [numbers(one.numel(), seed=9).view(one.shape).to(one) for one in results]
            total = sum((one * other).sum() for one, other in zip(results, outer, strict=True))
            parts = list(leaves.values())
            gradients = torch.autograd.grad(total, parts, allow_unused=True, materialize_grads=True)
        return (*results, *gradients)

    return both
