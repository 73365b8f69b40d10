"""Muon: momentum with orthogonalized updates, for the matrices of a network (Jordan 2024).

A few large singular values dominate a gradient; orthogonalizing gives every direction the same size, and small models
learn in about half the steps. It runs in the precision of the weights (torch.optim.Muon uses bfloat16, which is very
slow on a CPU without bfloat16 units) and on all matrices of one shape in one batch.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

# Coefficients of the Newton-Schulz iteration, which drives all singular values towards 1.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: Tensor, iterations: int = 4) -> Tensor:
    """(N, rows, columns), rows ≤ columns: the same singular vectors, approximately, with singular values near 1."""
    a, b, c = NEWTON_SCHULZ
    found = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(iterations):
        square = found @ found.transpose(1, 2)
        found = torch.baddbmm(found, torch.baddbmm(square, square, square, beta=b, alpha=c), found, beta=a)
    return found


class Muon(torch.optim.Optimizer):
    """For matrices only. The update is scaled to the size of AdamW's, so that both use the same learning rate."""

    def __init__(self, parameters: Iterable[Tensor], *, weight_decay: float = 0.0, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": 0.0, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes.setdefault(tuple(sorted(parameter.shape)), []).append(parameter)
            for several in shapes.values():
                self._step_one_shape(several, group["lr"], group["weight_decay"], group["momentum"])

    def _step_one_shape(self, parameters: list[Tensor], rate: float, decay: float, momentum: float) -> None:
        """One step for all matrices of one shape, wide ones and their transposes."""
        updates = []
        for parameter in parameters:
            gradient = parameter.grad
            assert gradient is not None
            state = self.state[parameter]
            if not state:
                state["momentum"] = torch.zeros_like(parameter)
            state["momentum"].lerp_(gradient, 1 - momentum)
            update = gradient.lerp(state["momentum"], momentum)  # Nesterov momentum
            updates.append(update if update.shape[0] <= update.shape[1] else update.T)
        # Of a sharded matrix the whole update is needed: all processes gather it, and keep their part of the result.
        wholes = [update.full_tensor() if hasattr(update, "full_tensor") else update for update in updates]
        for parameter, update in zip(parameters, orthogonalize(torch.stack(wholes)), strict=True):
            is_wide = parameter.shape[0] <= parameter.shape[1]
            parameter.mul_(1 - rate * decay)
            part = _part_of(parameter, update if is_wide else update.T)
            parameter.add_(part, alpha=-rate * 0.2 * math.sqrt(max(parameter.shape)))


def _part_of(parameter: Tensor, whole: Tensor) -> Tensor:
    """Of a whole update what a parameter has, if it is sharded."""
    if not hasattr(parameter, "full_tensor"):
        return whole
    from regard.training.sharding import sharded_like

    return sharded_like(parameter, whole)
