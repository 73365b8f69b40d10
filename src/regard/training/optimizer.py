"""The optimizers, AdamW and Muon, and their state in a checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from regard.training.muon import Muon

Kind = Literal["adamw", "muon"]
ADAMW_FACTOR_BESIDE_MUON = 0.5  # learning rate of embeddings, norms and biases, relative to that of Muon's matrices
STATE_NAMES = ("step", "exp_avg", "exp_avg_sq", "momentum")  # what either optimizer stores for a parameter


def make_optimizers(model: nn.Module, *, kind: Kind, weight_decay: float) -> list[torch.optim.Optimizer]:
    """The optimizers of a model: with kind "muon", Muon for the weights of linear layers and AdamW for the rest.

    Their learning rate is 0 until `set_learning_rate`.
    """
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)] if kind == "muon" else []
    taken = {id(matrix) for matrix in matrices}
    rest = [parameter for parameter in model.parameters() if parameter.requires_grad and id(parameter) not in taken]
    factor = ADAMW_FACTOR_BESIDE_MUON if matrices else 1.0
    groups = [
        {"params": [p for p in rest if p.dim() > 1], "weight_decay": weight_decay, "factor": factor},
        {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0, "factor": factor},  # biases and norms
    ]
    # betas and epsilon of Vaswani 2017, 5.3; fused: one kernel for all parameters
    adam = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    return [adam, Muon(matrices, weight_decay=weight_decay)] if matrices else [adam]


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> None:
    """Set the learning rate of every parameter group for this step."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("factor", 1.0)


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer], model: nn.Module) -> dict[str, Tensor]:
    """The state of the optimizers by parameter name: "encoder.blocks.0.….exp_avg" and so on."""
    return {
        f"{name}.{part}": value
        for optimizer in optimizers
        for name, parameter in model.named_parameters()
        for part, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizers(
    optimizers: Sequence[torch.optim.Optimizer],
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    sharded_like: Callable[[Tensor, Tensor], Tensor] = lambda _, whole: whole,
) -> None:
    """Load what `optimizer_tensors` returned into new optimizers.

    `sharded_like` makes of a whole tensor what a process has of it, if it has a shard of the parameter.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for optimizer in optimizers:
        for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
            saved = {part: tensors.get(f"{names[id(parameter)]}.{part}") for part in STATE_NAMES}
            parts = {part: value.to(parameter.device) for part, value in saved.items() if value is not None}
            if parts:
                optimizer.state[parameter] = {
                    part: sharded_like(parameter, value) if value.dim() else value for part, value in parts.items()
                }
