"""x Wᵀ + b, fast also for the few rows of a decoding step."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEW = 128  # rows up to which the other way round is faster


def linear(words: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`; without gradients and with few rows as (W xᵀ)ᵀ, which BLAS does 15 to 50 % faster on a CPU."""
    rows = words.shape[:-1].numel()
    if rows > FEW or torch.is_grad_enabled() or words.device.type != "cpu":
        return F.linear(words, weight, bias)
    return in_columns(words.reshape(rows, -1), weight, bias).contiguous().unflatten(0, words.shape[:-1])


def in_columns(words: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same for rows (B, D), left as the product W xᵀ leaves it: (B, V) whose columns lie together in memory."""
    columns = words.t()
    return (weight @ columns if bias is None else torch.addmm(bias[:, None], weight, columns)).t()


class Linear(nn.Linear):
    """nn.Linear through `linear`."""

    def forward(self, words: Tensor) -> Tensor:
        return linear(words, self.weight, self.bias)
