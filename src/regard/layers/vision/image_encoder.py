"""Image encoders: an image as a grid of vectors, one for each square cell.

Two kinds. Convolutions with residual connections (He 2016) halve the height and width and double the channels until a
position of the feature map is a cell. Patches (Dosovitskiy 2021) are the cells themselves, projected by one matrix,
with self-attention between them. A learned position is added to every cell, so that attention over the grid knows where
a cell is. Norms are per image: the other images of a batch change nothing.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers import cost
from regard.layers.attention import MultiHeadAttention
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import FeedForward
from regard.layers.linear import Linear
from regard.layers.positions import LearnedPositions
from regard.layers.tap import Tap

NORM_GROUPS = 8  # of channels in a group norm, if they divide so


class ConvolutionEncoder(nn.Module):
    """The grid (B, P, D) of pixels (B, 3, image_size, image_size), by convolutions.

    A cell of 8 pixels is three halvings: width / 4 channels at half the size, width / 2 at a quarter, then the width.
    """

    def __init__(self, *, image_size: int, cell_size: int, width: int, blocks: int) -> None:
        super().__init__()
        channels = channels_of(cell_size, width)
        self.stem = Convolution(3, channels[0], 4, stride=2)
        self.blocks = nn.ModuleList()
        for before, after in zip([channels[0], *channels], channels, strict=False):
            stride = 1 if before == after else 2
            self.blocks.append(ResidualBlock(before, after, stride))
            self.blocks.extend(ResidualBlock(after, after) for _ in range(blocks - 1))
        self.norm = nn.LayerNorm(width)
        self.positions = LearnedPositions((image_size // cell_size) ** 2, width)
        self.grid = Tap()
        init_positions(self.positions)

    def forward(self, pixels: Tensor) -> Tensor:
        features = self.stem(pixels)
        for block in self.blocks:
            features = block(features)
        cells = self.norm(features.flatten(2).transpose(1, 2))  # (B, P, D)
        return self.grid(cells + self.positions(0, cells.shape[1]))


def convolution_cost(*, image_size: int, cell_size: int, width: int, blocks: int) -> cost.ForwardCost:
    """The cost of a ConvolutionEncoder."""
    channels, size = channels_of(cell_size, width), image_size // 2
    total, before = 48 * channels[0] * size * size, channels[0]
    for after in channels:
        size //= 1 if after == before else 2
        first = 9 * after * after if after == before else 8 * before * after  # with stride 2: two 2 x 2 convolutions
        total += (first + (2 * blocks - 1) * 9 * after * after) * size * size
        before = after
    return cost.ForwardCost(total)


def channels_of(cell_size: int, width: int) -> list[int]:
    """The channels after each halving, down to a cell: [32, 64, 128] for a cell of 8 pixels and a width of 128."""
    steps = cell_size.bit_length() - 1
    assert steps > 0, f"a cell of {cell_size} pixels needs no halving"
    assert cell_size == 2**steps, f"{cell_size} is no power of two"
    assert width % 2 ** (steps - 1) == 0, f"width {width} cannot be halved {steps - 1} times"
    return [width >> back for back in reversed(range(steps))]


class ResidualBlock(nn.Module):
    """x + two convolutions of x, each after a norm and a ReLU (He 2016b).

    A convolution with stride 2 has a 2 x 2 kernel: with 3 x 3, each halving would shift what a position stands for to
    the left and up, and attention would fall beside the object.
    """

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(math.gcd(NORM_GROUPS, before), before)
        self.first = Convolution(before, after, 3 if stride == 1 else 2, stride=stride)
        self.norm_inner = nn.GroupNorm(math.gcd(NORM_GROUPS, after), after)
        self.second = Convolution(after, after, 3)
        self.shortcut = None if before == after else Convolution(before, after, 2, stride=stride)
        self.features = Tap()

    def forward(self, features: Tensor) -> Tensor:
        active = F.relu(self.norm(features))
        found = self.second(F.relu(self.norm_inner(self.first(active))))
        return self.features(found + (features if self.shortcut is None else self.shortcut(active)))


class Convolution(nn.Linear):
    """A convolution over (B, C, rows, columns), its weight stored as one matrix over the numbers of a window."""

    def __init__(self, before: int, after: int, kernel: int, *, stride: int = 1) -> None:
        super().__init__(before * kernel * kernel, after, bias=False)
        self.kernel, self.stride = kernel, stride
        if not self.weight.is_meta:
            nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def forward(self, features: Tensor) -> Tensor:
        weight = self.weight.view(len(self.weight), -1, self.kernel, self.kernel)
        return F.conv2d(features, weight, stride=self.stride, padding=(self.kernel - 1) // 2)


class PatchEncoder(nn.Module):
    """The grid by patches: each is a vector of cell_size² · 3 numbers; then Transformer blocks over all of them."""

    def __init__(
        self,
        *,
        image_size: int,
        cell_size: int,
        width: int,
        heads: int,
        blocks: int,
        feed_forward: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.cell_size = cell_size
        self.patch = Linear(3 * cell_size * cell_size, width)
        self.positions = LearnedPositions((image_size // cell_size) ** 2, width)
        self.blocks = nn.ModuleList(PatchBlock(width, heads, feed_forward, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.grid = Tap()
        init_positions(self.positions)

    def forward(self, pixels: Tensor) -> Tensor:
        cells = self.patch(patches(pixels, self.cell_size))
        cells = self.dropout(cells + self.positions(0, cells.shape[1]))
        for block in self.blocks:
            cells = block(cells)
        return self.grid(self.norm(cells))


def patch_cost(
    *, image_size: int, cell_size: int, width: int, heads: int, blocks: int, feed_forward: int
) -> cost.ForwardCost:
    """The cost of a PatchEncoder."""
    count = (image_size // cell_size) ** 2
    adds = count * 3 * cell_size**2 * width + blocks * cost.block(count, width, feed_forward)
    return cost.ForwardCost(adds, blocks * heads * count**2)


def patches(pixels: Tensor, size: int) -> Tensor:
    """Pixels (B, 3, rows, columns) as patches (B, P, 3 · size · size), row by row."""
    cut = pixels.unflatten(3, (-1, size)).unflatten(2, (-1, size))  # (B, 3, rows, size, columns, size)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


class PatchBlock(nn.Module):
    """Self-attention, then feed-forward (pre-norm)."""

    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.attention = MultiHeadAttention(width, heads)
        self.norm_feed_forward = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width, feed_forward, "gelu")
        self.dropout = Dropout(dropout)
        self.after_attention = Tap()
        self.cells = Tap()

    def forward(self, cells: Tensor) -> Tensor:
        normed = self.norm_attention(cells)
        cells = self.after_attention(cells + self.dropout(self.attention(normed, normed)))
        cells = cells + self.dropout(self.feed_forward(self.norm_feed_forward(cells)))
        return self.cells(cells)


@torch.no_grad()
def init_positions(positions: LearnedPositions) -> None:
    """Start smaller than the features they are added to, so that a position does not drown what a cell shows."""
    if not positions.weight.is_meta:
        positions.weight.normal_(std=0.3)
