"""The Vision Transformer as its checkpoints have it (Dosovitskiy 2021, 3.1).

The cells of an image are the tokens, after a [CLS] token that is the same for every image and gathers what the whole
image shows. It differs from the patches of image_encoder.py in that token, which has a position of its own, and in what
checkpoints leave open: the activation, whether queries, keys and values have a bias, and the epsilon of the norms.
"""

from collections.abc import Callable, Sequence

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config
from regard.layers import cost
from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import FeedForward
from regard.layers.linear import Linear
from regard.layers.positions import LearnedPositions
from regard.layers.tap import Tap
from regard.layers.vision.image_encoder import patches

INITIAL_STD = 0.02  # of the [CLS] token and the positions, unless they are loaded


class ViTConfig(Config):
    """The config of a ViT; the sizes of an image and of a cell belong to the model around it."""

    width: int = Field(768, ge=1, description="D, the width of the hidden states")
    heads: int = Field(12, ge=1, description="H, attention heads")
    layers: int = Field(12, ge=1, description="number of blocks")
    feed_forward: int = Field(3072, ge=1, description="inner width of the feed-forward network")
    activation: str = Field("gelu", description="of the feed-forward network")
    qkv_bias: bool = Field(True, description="queries, keys and values have a bias")
    norm_epsilon: float = Field(1e-12, gt=0, description="epsilon of the layer norms")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the activations that are set to zero in training")
    mean: tuple[float, float, float] = Field(
        (0.5, 0.5, 0.5), description="of red, green and blue, subtracted from the pixels"
    )
    deviation: tuple[float, float, float] = Field(
        (0.5, 0.5, 0.5), description="standard deviation of each, which the pixels are divided by"
    )

    def flops(self, *, image_size: int, cell_size: int) -> cost.ForwardCost:
        count = (image_size // cell_size) ** 2
        tokens = count + 1
        return cost.ForwardCost(
            count * 3 * cell_size**2 * self.width + self.layers * cost.block(tokens, self.width, self.feed_forward),
            self.layers * self.heads * tokens**2,
        )


class VisionTransformer(nn.Module):
    """Hidden states (B, 1 + P, D) of pixels (B, 3, image_size, image_size): [CLS], then the cells."""

    def __init__(self, config: ViTConfig, *, image_size: int, cell_size: int) -> None:
        super().__init__()
        width = config.width
        self.cell_size = cell_size
        self.patch = Linear(3 * cell_size * cell_size, width)
        self.first = nn.Parameter(torch.empty(width))
        self.positions = LearnedPositions(1 + (image_size // cell_size) ** 2, width)
        self.blocks = nn.ModuleList(ViTBlock(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        for parameter in (self.first, self.positions.weight):
            nn.init.normal_(parameter, std=INITIAL_STD)  # on the meta device it does nothing

    def forward(self, pixels: Tensor) -> Tensor:
        cells = self.patch(patches(pixels, self.cell_size))  # (B, P, D)
        hidden = torch.cat([self.first.expand(len(cells), 1, -1), cells], dim=1)
        hidden = self.dropout(hidden + self.positions(0, hidden.shape[1]))
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden)


class ViTEncoder(nn.Module):
    """The cells of a ViT, without [CLS], as a grid (B, P, width).

    `normalize` maps pixels to the mean and deviation that the ViT was trained with.
    """

    def __init__(
        self,
        vit: ViTConfig,
        *,
        image_size: int,
        cell_size: int,
        width: int,
        normalize: Callable[[Tensor, Sequence[float], Sequence[float]], Tensor],
    ) -> None:
        super().__init__()
        self.normalize, self.mean, self.deviation = normalize, vit.mean, vit.deviation
        self.transformer = VisionTransformer(vit, image_size=image_size, cell_size=cell_size)
        self.project = Linear(vit.width, width)
        self.grid = Tap()

    @property
    def blocks(self) -> nn.ModuleList:
        return self.transformer.blocks

    def forward(self, pixels: Tensor) -> Tensor:
        hidden = self.transformer(self.normalize(pixels, self.mean, self.deviation))
        return self.grid(self.project(hidden[:, 1:]))


class ViTBlock(nn.Module):
    """Self-attention, then feed-forward (pre-norm)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width, config.norm_epsilon)
        self.attention = SelfAttention(config.width, config.heads, causal=False, bias=config.qkv_bias)
        self.norm_feed_forward = nn.LayerNorm(config.width, config.norm_epsilon)
        self.feed_forward = FeedForward(config.width, config.feed_forward, config.activation)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = self.after_attention(hidden + self.dropout(self.attention(self.norm_attention(hidden))))
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)
