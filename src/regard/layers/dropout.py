"""Dropout: while training, some numbers are left out by chance, and the others made larger (Srivastava 2014)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from regard import kernels


class Dropout(nn.Dropout):
    """nn.Dropout; with our own kernel, which draws chance on all cores and keeps no mask."""

    def forward(self, hidden: Tensor) -> Tensor:
        if not self.training:
            return hidden
        if 0 < self.p < 1 and not self.inplace and kernels.takes(hidden):
            return _Dropped.apply(hidden, self.p)
        return super().forward(hidden)


class _Dropped(Function):
    """The gradient takes the same way: what was left out gets none."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, share: float) -> Tensor:
        one, other = torch.randint(2**32, (2,)).tolist()  # of torch's own chance: a step that is repeated repeats it
        ctx.share, ctx.chance = share, (one, other)
        return kernels.dropout(hidden, share, ctx.chance)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        return kernels.dropout(outer, ctx.share, ctx.chance), None
