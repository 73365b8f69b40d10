"""Words as vectors, and vectors back to words with the same table."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Embedding(nn.Module):
    """A table (V, D): `forward` looks ids up, `logits` compares words with every row (Press & Wolf 2017).

    Rows start with deviation 1/√D. Scaled by √D they enter the model with variance 1, as the positions do; unscaled
    they give logits of variance 1 for words of variance 1. One table serves both ends (Vaswani 2017, 3.4).
    """

    def __init__(self, vocabulary: int, width: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.scale = math.sqrt(width) if scaled else 1.0
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight) * self.scale

    def logits(self, words: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(words, self.weight, bias)
