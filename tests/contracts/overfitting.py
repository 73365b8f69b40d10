"""Train a tiny model on one batch until it knows it: as few steps as that takes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

CHECKS = 4  # in a row, a step between them: a model that passes by chance at one step does not know the batch


def overfit(
    model: nn.Module, measure: Callable[[], tuple[Tensor, bool]], *, learning_rate: float, steps: int
) -> tuple[float, bool]:
    """The last loss, and whether the batch is known for good; `measure` gives both as the model is. No dropout."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    loss, known = measure()
    in_a_row = int(known)
    for _ in range(steps):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss, known = measure()
        in_a_row = in_a_row + 1 if known else 0
        if in_a_row == CHECKS:
            break
    return loss.item(), in_a_row >= CHECKS
