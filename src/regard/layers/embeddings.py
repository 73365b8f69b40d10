"""Embeddings of tokens and texts, and the head that turns hidden states into logits of masked tokens."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import InputError
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.linear import Linear
from regard.layers.positions import LearnedPositions
from regard.ops.linear import logits
from regard.ops.shortlist import ArgmaxShortlist


class Embedding(nn.Module):
    """An embedding matrix (V, D): `forward` looks ids up, `logits` multiplies hidden states with every row.

    Rows start with deviation 1/√D. Scaled by √D they enter the model with variance 1, as the positions do; unscaled
    they give logits of variance 1 for hidden states of variance 1. One matrix can serve both ends (Press & Wolf 2017;
    Vaswani 2017, 3.4). The row of padding, if there is one, starts at zero and is not trained.
    """

    def __init__(self, vocab_size: int, width: int, *, pad_id: int | None = None, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, width))
        self.pad_id = pad_id
        self.scale = math.sqrt(width) if scaled else 1.0
        if not self.weight.is_meta:  # random numbers on the meta device load torch's compiler, which takes two seconds
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
        gradient = gradient.clone()
        gradient[ctx.row] = 0.0
        return gradient, None


class TextEmbedding(nn.Module):
    """Token + position + segment, normed (Devlin 2019, 3)."""

    def __init__(
        self, vocab_size: int, width: int, *, context: int, num_segments: int, dropout: float, epsilon: float
    ) -> None:
        super().__init__()
        self.tokens = Embedding(vocab_size, width, scaled=False)
        self.positions = LearnedPositions(context, width)
        self.segments = Embedding(num_segments, width, scaled=False)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, position_ids: Tensor | None = None) -> Tensor:
        """(B, T, D) of ids (B, T); without segment ids all are of segment 0, without position ids they count from 0."""
        if segment_ids is None:
            segments = self.segments.weight[0]
        elif segment_ids.shape != ids.shape:
            raise InputError(f"segment_ids are {tuple(segment_ids.shape)}, wanted the shape of ids, {tuple(ids.shape)}")
        else:
            segments = self.segments(segment_ids)
        return self.dropout(self.norm(self.tokens(ids) + self.positions(0, ids.shape[1], position_ids) + segments))


class MaskedLMHead(nn.Module):
    """A layer and a norm, then logits by the embedding matrix."""

    def __init__(self, vocab_size: int, width: int, *, activation: str, epsilon: float) -> None:
        super().__init__()
        self.project = Linear(width, width)
        self.activation = ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.bias = nn.Parameter(torch.empty(vocab_size))

    def forward(self, hidden: Tensor, embedding: Embedding) -> Tensor:
        return embedding.logits(self.norm(self.activation(self.project(hidden))), self.bias)
