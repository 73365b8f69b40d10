"""Pictures as a grid of vectors: each tells what stands in one square cell of the picture, and what is around it.

Two ways. Convolutions with residual connections (He 2016) halve the sides and double the channels until a place is a
cell. Patches (Dosovitskiy 2021) are cells cut out, one matrix for all, that look at each other as words do. A learned
position is added to every cell, so that whoever looks at the grid knows where. Norms are of one picture: what stands
beside it in a batch changes nothing.
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

GROUPS = 8  # of channels that a norm takes together, where they divide so


class ConvolutionEncoder(nn.Module):
    """The grid (B, P, D) of pixels (B, 3, side, side), by convolutions.

    A cell of 8 pixels is three halvings: width / 4 channels at half the side, width / 2 at a quarter, then the width.
    """

    def __init__(self, *, side: int, cell: int, width: int, blocks: int) -> None:
        super().__init__()
        channels = halvings(cell, width)
        self.stem = Convolution(3, channels[0], 4, stride=2)
        self.blocks = nn.ModuleList()
        for before, after in zip([channels[0], *channels], channels, strict=False):
            stride = 1 if before == after else 2
            self.blocks.append(ResidualBlock(before, after, stride))
            self.blocks.extend(ResidualBlock(after, after) for _ in range(blocks - 1))
        self.norm = nn.LayerNorm(width)
        self.positions = LearnedPositions((side // cell) ** 2, width)
        self.grid = Tap()
        start_positions(self.positions)

    def forward(self, pixels: Tensor) -> Tensor:
        position_ids = self.stem(pixels)
        for block in self.blocks:
            position_ids = block(position_ids)
        cells = self.norm(position_ids.flatten(2).transpose(1, 2))  # (B, P, D)
        return self.grid(cells + self.positions(0, cells.shape[1]))


def convolution_cost(*, side: int, cell: int, width: int, blocks: int) -> cost.ForwardCost:
    """The cost of a ConvolutionEncoder."""
    channels, side = halvings(cell, width), side // 2
    total, before = 48 * channels[0] * side * side, channels[0]
    for after in channels:
        side //= 1 if after == before else 2
        first = 9 * after * after if after == before else 8 * before * after  # with stride 2: two 2 x 2 convolutions
        total += (first + (2 * blocks - 1) * 9 * after * after) * side * side
        before = after
    return cost.ForwardCost(total)


def halvings(cell: int, width: int) -> list[int]:
    """The channels after each halving, up to a cell: [32, 64, 128] for a cell of 8 pixels and a width of 128."""
    steps = cell.bit_length() - 1
    assert steps > 0, f"a cell of {cell} pixels needs no halving"
    assert cell == 2**steps, f"{cell} is no power of two"
    assert width % 2 ** (steps - 1) == 0, f"width {width} cannot be halved {steps - 1} times"
    return [width >> back for back in reversed(range(steps))]


class ResidualBlock(nn.Module):
    """x + two convolutions of x, each behind a norm and a rectifier (He 2016b).

    Where it halves the sides its windows are of two by two places: of three by three, each halving would move what a
    place stands for to the left and up, and in the end a look would fall beside the thing it sees.
    """

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(math.gcd(GROUPS, before), before)
        self.first = Convolution(before, after, 3 if stride == 1 else 2, stride=stride)
        self.norm_inner = nn.GroupNorm(math.gcd(GROUPS, after), after)
        self.second = Convolution(after, after, 3)
        self.shortcut = None if before == after else Convolution(before, after, 2, stride=stride)
        self.position_ids = Tap()

    def forward(self, position_ids: Tensor) -> Tensor:
        active = F.relu(self.norm(position_ids))
        found = self.second(F.relu(self.norm_inner(self.first(active))))
        return self.position_ids(found + (position_ids if self.shortcut is None else self.shortcut(active)))


class Convolution(nn.Linear):
    """A convolution over (B, C, rows, columns), its weight kept as what it is: one matrix over a window's numbers."""

    def __init__(self, before: int, after: int, kernel: int, *, stride: int = 1) -> None:
        super().__init__(before * kernel * kernel, after, bias=False)
        self.kernel, self.stride = kernel, stride
        if not self.weight.is_meta:
            nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def forward(self, position_ids: Tensor) -> Tensor:
        weight = self.weight.view(len(self.weight), -1, self.kernel, self.kernel)
        return F.conv2d(position_ids, weight, stride=self.stride, padding=(self.kernel - 1) // 2)


class PatchEncoder(nn.Module):
    """The same grid by patches: each a word of cell × cell × 3 numbers, then Transformer blocks over all of them."""

    def __init__(
        self, *, side: int, cell: int, width: int, heads: int, blocks: int, feed_forward: int, dropout: float
    ) -> None:
        super().__init__()
        self.cell = cell
        self.patch = Linear(3 * cell * cell, width)
        self.positions = LearnedPositions((side // cell) ** 2, width)
        self.blocks = nn.ModuleList(PatchBlock(width, heads, feed_forward, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.grid = Tap()
        start_positions(self.positions)

    def forward(self, pixels: Tensor) -> Tensor:
        cells = self.patch(patches(pixels, self.cell))
        cells = self.dropout(cells + self.positions(0, cells.shape[1]))
        for block in self.blocks:
            cells = block(cells)
        return self.grid(self.norm(cells))


def patch_cost(*, side: int, cell: int, width: int, heads: int, blocks: int, feed_forward: int) -> cost.ForwardCost:
    """The cost of a PatchEncoder."""
    patches = (side // cell) ** 2
    return cost.ForwardCost(
        patches * 3 * cell**2 * width + blocks * cost.block(patches, width, feed_forward), blocks * heads * patches**2
    )


def patches(pixels: Tensor, cell: int) -> Tensor:
    """Pixels (B, 3, side, side) as patches (B, P, 3 · cell · cell), in reading order."""
    cut = pixels.unflatten(3, (-1, cell)).unflatten(2, (-1, cell))  # (B, 3, rows, cell, columns, cell)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


class PatchBlock(nn.Module):
    """Self-attention, then feed-forward, each behind its norm."""

    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.attention = MultiHeadAttention(width, heads)
        self.norm_feed_forward = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width, feed_forward, "gelu")
        self.dropout = Dropout(dropout)
        self.cells = Tap()

    def forward(self, cells: Tensor) -> Tensor:
        seen = self.norm_attention(cells)
        cells = cells + self.dropout(self.attention(seen, seen))
        cells = cells + self.dropout(self.feed_forward(self.norm_feed_forward(cells)))
        return self.cells(cells)


@torch.no_grad()
def start_positions(positions: LearnedPositions) -> None:
    """Smaller than what they are added to: where a cell stands is said, and does not drown what it shows."""
    if not positions.table.is_meta:
        positions.table.normal_(std=0.3)
