"""Binary codes of 16 positions beside sinusoids: how far apart are neighbors?"""

from functools import partial

import torch
from torch import Tensor

from regard.inspection.drawing.colors import FAINT, INK, KEY, QUERY
from regard.inspection.drawing.layout import MARGIN, TOP, Block, Style, bars, framed, labelled
from regard.inspection.drawing.scene import Figure, Frame, Scene, Text
from regard.layers.positions import SinusoidalPositions

POSITIONS = 16
WIDTH = 4  # bits, and numbers of a sinusoidal vector
ROW = 14.0
NAME = 16.0
BETWEEN = 36.0
LABELS = [str(position) for position in range(POSITIONS)]


def draw() -> Figure:
    """Two frames: the codes with the distances of neighbors, and the distances of all pairs."""
    codes = {"binary": binary(), "sinusoidal": SinusoidalPositions(POSITIONS, WIDTH)(0, POSITIONS)}
    return Figure(
        [Frame("neighbors", partial(_neighbors, codes)), Frame("all pairs", partial(_pairs, codes))], "distances"
    )


def binary() -> Tensor:
    """Each position in 4 bits, the highest first."""
    bits = torch.arange(WIDTH - 1, -1, -1)
    return ((torch.arange(POSITIONS)[:, None] >> bits) & 1).float()


def neighbor_distances(codes: Tensor) -> Tensor:
    """The Euclidean distance of each position from the next one."""
    return (codes[1:] - codes[:-1]).norm(dim=1)


def _neighbors(codes: dict[str, Tensor]) -> Scene:
    title = "binary and sinusoidal codes of 16 positions"
    caption = (
        "A bar is the distance of two neighbors. Binary codes jump where many bits flip (7 → 8); "
        "sinusoids make equal steps."
    )
    high = max(float(neighbor_distances(one).max()) for one in codes.values())
    left = _codes(MARGIN, "binary", codes["binary"], Style((20, ROW), "key", 0, 1.6, 0, (INK, FAINT)), high, KEY)
    style = Style((32, ROW), "diverging", -1, 1, 2, (INK, FAINT))
    right = _codes(MARGIN + left.width + BETWEEN, "sinusoidal", codes["sinusoidal"], style, high, QUERY)
    width = left.width + BETWEEN + right.width
    return framed(title, caption, [*left.items, *right.items], width, left.height)


def _codes(x: float, name: str, codes: Tensor, style: Style, high: float, color: str) -> Block:
    """One kind of code with a bar between each two rows."""
    columns = [str(number) for number in range(WIDTH)]
    block = labelled(x, TOP + NAME, codes.numpy(), LABELS, columns, style, name=f"{name} codes")
    steps = [f"{position} → {position + 1}" for position in range(POSITIONS - 1)]
    first = TOP + NAME + block.height - POSITIONS * ROW + ROW / 2
    drawn = bars(
        x + block.width + 8,
        first,
        steps,
        neighbor_distances(codes).tolist(),
        width=90,
        color=color,
        high=high,
        number="{:.2f}",
    )
    names = [
        Text(x, TOP + NAME / 2, name, 10, INK, bold=True),
        Text(x + block.width + 8, TOP + NAME / 2, "distance of neighbors", 9, FAINT),
    ]
    return Block([*block.items, *drawn.items, *names], block.width + 8 + drawn.width, NAME + block.height)


def _pairs(codes: dict[str, Tensor]) -> Scene:
    title = "distances of all pairs of 16 positions"
    caption = "Sinusoids: the distance depends only on how far apart two positions are. Binary: also on where they are."
    items, x, height = [], MARGIN, 0.0
    for (name, one), ramp in zip(codes.items(), ("key", "query"), strict=True):
        distances = torch.cdist(one, one, compute_mode="donot_use_mm_for_euclid_dist").numpy()
        style = Style((18, 18), ramp, 0.0, float(distances.max()), 1, (INK, INK))
        block = labelled(x, TOP + NAME, distances, LABELS, LABELS, style, name=f"distances of {name} codes")
        items += [Text(x, TOP + NAME / 2, name, 10, INK, bold=True), *block.items]
        x, height = x + block.width + BETWEEN, NAME + block.height
    return framed(title, caption, items, x - BETWEEN - MARGIN, height)
