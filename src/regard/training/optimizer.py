"""AdamW, and how the learning rate goes: warm-up, then down."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Schedule = Literal["inverse_sqrt", "cosine", "linear", "constant"]


def learning_rate(step: int, *, schedule: Schedule, peak: float, warmup: int, total: float) -> float:
    """The rate of a step, counted from 1: a straight rise to the peak over the warm-up, then the schedule."""
    if step <= warmup:
        return peak * step / warmup
    if schedule == "inverse_sqrt":  # Vaswani 2017, 5.3, with the peak named instead of implied by the width
        return peak * math.sqrt(max(1, warmup) / step)
    if schedule == "constant":
        return peak
    share = min(1.0, (step - warmup) / max(1.0, total - warmup))
    return peak * (0.5 + 0.5 * math.cos(math.pi * share) if schedule == "cosine" else 1 - share)


def make_optimizer(model: nn.Module, *, weight_decay: float) -> torch.optim.AdamW:
    """AdamW in one fused pass; decay on matrices, not on biases and norms. The loop sets the rate at each step."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    # Betas and epsilon are the paper's (5.3).
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's memory by parameter name: "encoder.blocks.0.….exp_avg" and so on."""
    return {
        f"{name}.{part}": value
        for name, parameter in model.named_parameters()
        for part, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give a fresh optimizer the memory that `optimizer_tensors` took."""
    for name, parameter in model.named_parameters():
        parts = {part: tensors.get(f"{name}.{part}") for part in ("step", "exp_avg", "exp_avg_sq")}
        if any(value is not None for value in parts.values()):
            optimizer.state[parameter] = {part: value for part, value in parts.items() if value is not None}
