"""The Vision Transformer as its checkpoints have it (Dosovitskiy 2021, 3.1).

A picture's cells are words, with one more before them, the same for every picture, which gathers what the whole is.
It differs from the patches of image_encoder.py in that first word, which has a position of its own, and in what
checkpoints leave open: the activation, whether queries, keys and values have a bias, and the smallest variance of a
norm.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config
from regard.layers import cost
from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import FeedForward
from regard.layers.image_encoder import patches
from regard.layers.linear import Linear
from regard.layers.positions import LearnedPositions
from regard.layers.tap import Tap

DEVIATION = 0.02  # of the first word and the positions, where they begin by chance


class ViTConfig(Config):
    """What a ViT is made of; the sides of a picture and of a cell are told beside it."""

    width: int = Field(768, ge=1, description="D, the length of every cell's vector")
    heads: int = Field(12, ge=1, description="H, attentions side by side")
    layers: int = Field(12, ge=1)
    feed_forward: int = Field(3072, ge=1, description="inner width of the feed-forward network")
    activation: str = Field("gelu", description="of the feed-forward network")
    bias: bool = Field(True, description="queries, keys and values have one")
    epsilon: float = Field(1e-12, gt=0, description="added to the variance in a norm")
    dropout: float = Field(0.0, ge=0, lt=1)
    mean: tuple[float, float, float] = Field((0.5, 0.5, 0.5), description="of red, green and blue, taken away")
    deviation: tuple[float, float, float] = Field((0.5, 0.5, 0.5), description="of each, divided by")

    def flops(self, *, side: int, cell: int) -> cost.ForwardCost:
        patches = (side // cell) ** 2
        tokens = patches + 1
        return cost.ForwardCost(
            patches * 3 * cell**2 * self.width + self.layers * cost.block(tokens, self.width, self.feed_forward),
            self.layers * self.heads * tokens**2,
        )


class VisionTransformer(nn.Module):
    """The words (B, 1 + P, D) of pixels (B, 3, side, side), the first for the whole picture, then one a cell."""

    def __init__(self, config: ViTConfig, *, side: int, cell: int) -> None:
        super().__init__()
        width = config.width
        self.cell = cell
        self.patch = Linear(3 * cell * cell, width)
        self.first = nn.Parameter(torch.empty(width))
        self.positions = LearnedPositions(1 + (side // cell) ** 2, width)
        self.blocks = nn.ModuleList(ViTBlock(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width, config.epsilon)
        self.dropout = Dropout(config.dropout)
        for table in (self.first, self.positions.table):
            nn.init.normal_(table, std=DEVIATION)  # on the meta device it does nothing

    def forward(self, pixels: Tensor) -> Tensor:
        cells = self.patch(patches(pixels, self.cell))  # (B, P, D)
        hidden = torch.cat([self.first.expand(len(cells), 1, -1), cells], dim=1)
        hidden = self.dropout(hidden + self.positions(0, hidden.shape[1]))
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden)


class ViTBlock(nn.Module):
    """Self-attention, then feed-forward, each behind its norm."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width, config.epsilon)
        self.attention = SelfAttention(config.width, config.heads, causal=False, bias=config.bias)
        self.norm_feed_forward = nn.LayerNorm(config.width, config.epsilon)
        self.feed_forward = FeedForward(config.width, config.feed_forward, config.activation)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.dropout(self.attention(self.norm_attention(hidden)))
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)
