"""AdamW and Muon, and how the learning rate goes: warm-up, then down."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from regard.training.muon import Muon

Kind = Literal["adamw", "muon"]
BESIDE_MUON = 0.5  # the rate of embeddings, norms and biases beside Muon's matrices, as a multiple of the run's
Schedule = Literal["inverse_sqrt", "cosine", "linear", "constant", "wsd"]
MEMORY = ("step", "exp_avg", "exp_avg_sq", "momentum")  # what either keeps of a parameter


def learning_rate(
    step: int, *, schedule: Schedule, peak: float, warmup: int, total: float, decay: float = 0.2
) -> float:
    """The rate of a step, counted from 1: a straight rise to the peak over the warm-up, then the schedule.

    "wsd" (warm-up, stable, decay) stays at the peak and falls straight to zero over the last share `decay` of the run.
    """
    if step <= warmup:
        return peak * step / warmup
    if schedule == "inverse_sqrt":  # Vaswani 2017, 5.3, with the peak named instead of implied by the width
        return peak * math.sqrt(max(1, warmup) / step)
    if schedule == "constant":
        return peak
    if schedule == "wsd":
        return peak * min(1.0, max(0.0, total - step) / max(1.0, decay * total))
    share = min(1.0, (step - warmup) / max(1.0, total - warmup))
    return peak * (0.5 + 0.5 * math.cos(math.pi * share) if schedule == "cosine" else 1 - share)


def make_optimizers(model: nn.Module, *, kind: Kind, weight_decay: float) -> list[torch.optim.Optimizer]:
    """What steps the parameters. Muon takes the linear layers' matrices, AdamW the rest; `set_rate` sets the rate."""
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)] if kind == "muon" else []
    taken = {id(matrix) for matrix in matrices}
    rest = [parameter for parameter in model.parameters() if parameter.requires_grad and id(parameter) not in taken]
    factor = BESIDE_MUON if matrices else 1.0
    groups = [
        {"params": [p for p in rest if p.dim() > 1], "weight_decay": weight_decay, "factor": factor},
        {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0, "factor": factor},  # biases and norms
    ]
    # In one fused pass; betas and epsilon are the paper's (5.3).
    adam = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    return [adam, Muon(matrices, weight_decay=weight_decay)] if matrices else [adam]


def set_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> None:
    """Give every optimizer the run's rate of this step."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("factor", 1.0)


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer], model: nn.Module) -> dict[str, Tensor]:
    """The optimizers' memory by parameter name: "encoder.blocks.0.….exp_avg" and so on."""
    return {
        f"{name}.{part}": value
        for optimizer in optimizers
        for name, parameter in model.named_parameters()
        for part, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizers(
    optimizers: Sequence[torch.optim.Optimizer], model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Give fresh optimizers the memory that `optimizer_tensors` took."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for optimizer in optimizers:
        for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
            parts = {part: tensors.get(f"{names[id(parameter)]}.{part}") for part in MEMORY}
            if any(value is not None for value in parts.values()):
                optimizer.state[parameter] = {part: value for part, value in parts.items() if value is not None}
