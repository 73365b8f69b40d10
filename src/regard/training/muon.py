"""Muon: momentum whose update is made orthogonal, for the matrices inside a network (Jordan 2024).

A gradient's few large directions drown the others; orthogonalizing gives every direction the same size, and small
models learn in about half the steps. The work is done in the weights' own precision (torch.optim.Muon goes through
bfloat16, which a CPU without such units computes very slowly) and on all matrices of one shape at once.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

# The quintic whose repeated use drives all singular values towards 1.
QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalized(matrices: Tensor, rounds: int = 4) -> Tensor:
    """(N, rows, columns), rows ≤ columns: each with about the same directions, its singular values near 1."""
    a, b, c = QUINTIC
    found = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = found @ found.transpose(1, 2)
        found = torch.baddbmm(found, torch.baddbmm(square, square, square, beta=b, alpha=c), found, beta=a)
    return found


class Muon(torch.optim.Optimizer):
    """For matrices only. The update is scaled to the size AdamW's would have, so that both take the same rate."""

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
                self._step_alike(several, group["lr"], group["weight_decay"], group["momentum"])

    def _step_alike(self, parameters: list[Tensor], rate: float, decay: float, momentum: float) -> None:
        """One step for matrices of one shape, lying or standing."""
        updates = []
        for parameter in parameters:
            gradient = parameter.grad
            assert gradient is not None
            state = self.state[parameter]
            if not state:
                state["momentum"] = torch.zeros_like(parameter)
            state["momentum"].lerp_(gradient, 1 - momentum)
            update = gradient.lerp(state["momentum"], momentum)  # Nesterov's look ahead
            updates.append(update if update.shape[0] <= update.shape[1] else update.T)
        for parameter, update in zip(parameters, orthogonalized(torch.stack(updates)), strict=True):
            lying = parameter.shape[0] <= parameter.shape[1]
            parameter.mul_(1 - rate * decay)
            parameter.add_(update if lying else update.T, alpha=-rate * 0.2 * math.sqrt(max(parameter.shape)))
