"""Why √d: the gradient of softmax against the scale of its inputs, and the scale of q · k against the width."""

import torch
from torch import Tensor

from regard.inspection.drawing.charts import Axis, Curve, Mark, chart
from regard.inspection.drawing.colors import KEY, QUERY
from regard.inspection.drawing.layout import MARGIN, TOP, framed
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.layers.attention import Dot, ScaledDot, Similarity

KEYS = 8
POINTS = 61  # of the curve
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
QUERIES = 256  # of each width, drawn from N(0, 1)
SEED = 3
SIZE = (400.0, 210.0)


def draw() -> Figure:
    """Two frames: the gradient of softmax, and the standard deviation of q · k."""
    return Figure([Frame("gradient", _gradient), Frame("scores", _spread)], "figure")


def scores() -> Tensor:
    """Evenly spaced scores with a standard deviation of 1, in double precision: the gradients get very small."""
    spaced = torch.arange(KEYS, dtype=torch.float64)
    return (spaced - spaced.mean()) / spaced.std(correction=0)


def largest_gradient(scale: float) -> float:
    """The largest absolute entry of the Jacobian of softmax at the scores times a scale."""
    jacobian = torch.autograd.functional.jacobian(torch.nn.Softmax(-1), scores() * scale)
    return float(jacobian.abs().max())


def deviation(width: int, similarity: Similarity) -> float:
    """The standard deviation of the scores of queries and keys that are N(0, 1)."""
    generator = torch.Generator().manual_seed(SEED)
    query, key = (torch.randn(QUERIES, width, generator=generator) for _ in range(2))
    return float((similarity(query, key) * similarity.scale(width)).std())


def _gradient() -> Scene:
    title = "the gradient of softmax against the scale of the scores"
    caption = (
        "Scores q · k of N(0, 1) numbers have a deviation of √d; divided by √d, of 1, where the gradient is large."
    )
    scales = torch.logspace(-1, 2, POINTS, dtype=torch.float64).tolist()
    curve = Curve("", scales, [largest_gradient(scale) for scale in scales], QUERY, dots=True)
    decades = range(-20, 1, 4)
    labels = ["1" if not power else f"1e\N{MINUS SIGN}{-power}" for power in decades]
    up = Axis("largest |∂ weight / ∂ score|", [10.0**power for power in decades], True, labels)
    across = Axis("standard deviation of the scores", [0.1, 1, 10, 100], True)
    marks = [_mark(1, "divided by √d"), _mark(8, "d = 64"), _mark(512**0.5, "d = 512")]
    block = chart(MARGIN, TOP, SIZE, across, up, [curve], marks)
    return framed(title, caption, block.items, block.width, block.height)


def _mark(scale: float, name: str) -> Mark:
    return Mark(scale, f"{name}: {largest_gradient(scale):.2g}".replace("-", "\N{MINUS SIGN}"))


def _spread() -> Scene:
    title = "the standard deviation of the scores against the width of the vectors"
    caption = "Measured on queries and keys of N(0, 1) numbers: q · k grows with √d, q · k / √d stays at 1."
    curves = [
        Curve(name, WIDTHS, [deviation(width, one) for width in WIDTHS], color, dots=True)
        for name, one, color in (("q · k", Dot(), KEY), ("q · k / √d", ScaledDot(), QUERY))
    ]
    across = Axis("width d of a query and a key", WIDTHS, True)
    block = chart(MARGIN, TOP, SIZE, across, Axis("standard deviation", [0.5, 1, 2, 4, 8, 16, 32, 64], True), curves)
    return framed(title, caption, block.items, block.width, block.height)
