"""Words as vectors, and vectors back to words with the same table."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.ops.linear import logits
from regard.ops.shortlist import ArgmaxShortlist


class Embedding(nn.Module):
    """A table (V, D): `forward` looks ids up, `logits` compares words with every row (Press & Wolf 2017).

    Rows start with deviation 1/√D. Scaled by √D they enter the model with variance 1, as the positions do; unscaled
    they give logits of variance 1 for words of variance 1. One table serves both ends (Vaswani 2017, 3.4). The row of
    padding, where there is one, starts at zero and does not learn: it is no word.
    """

    def __init__(self, vocab_size: int, width: int, *, pad_id: int | None = None, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, width))
        self.pad_id = pad_id
        self.scale = math.sqrt(width) if scaled else 1.0
        if not self.weight.is_meta:  # chance on the meta device loads torch's compiler, which takes two seconds
            nn.init.normal_(self.weight, std=width**-0.5)
            if pad_id is not None:
                with torch.no_grad():
                    self.weight[pad_id] = 0.0

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight, self.pad_id) * self.scale

    def logits(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """Logits (…, V) for hidden states (…, D); those of a decoding step, (B, D), may be a transposed view."""
        weight = self.weight if self.pad_id is None else _FrozenRow.apply(self.weight, self.pad_id)
        return logits(hidden, weight, bias)

    def argmax_shortlist(self, bias: Tensor | None = None) -> ArgmaxShortlist | None:
        """What finds the largest logit without computing all of them; None where that is not possible or not faster."""
        return ArgmaxShortlist.build(self.weight, bias)


class _FrozenRow(torch.autograd.Function):
    """The matrix as it is; in the backward pass one of its rows gets no gradient."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, row: int) -> Tensor:
        ctx.row = row
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_fill(0, gradient.new_tensor([ctx.row], dtype=torch.long), 0.0), None
