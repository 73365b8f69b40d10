"""The model's own positions: its encodings as a heat map, and how alike two positions are by their distance."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import nn

from regard.inspection.drawing.colors import FAINT, INK, KEY, QUERY, RULE
from regard.inspection.drawing.layout import TOP, Block, heading_width
from regard.inspection.drawing.scene import Figure, Frame, Item, Line, Matrix, Scene, Text, heading, in_drawing
from regard.inspection.trace import TraceInfo
from regard.inspection.views.base import Choices, Subject, View
from regard.layers.positions import LearnedPositions, PositionEncoding, Rotary, SinusoidalPositions

NUM_POSITIONS = 64
MAX_WIDTH = 128  # columns that are shown
CHART = (400.0, 110.0)
LEFT = 44.0
PERCENTILE = 99.0  # of the sizes of all numbers
OUTLIER = 3.0  # times the percentile: beyond, the largest number would leave all others nearly white
KINDS = ("SinusoidalPositions", "LearnedPositions", "Rotary", "RelativePositionBias")


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame for each module that encodes positions."""
    model = subject.require_model("positions").model
    found = [(path, module) for path, module in model.named_modules() if isinstance(module, PositionEncoding | Rotary)]
    return Figure([Frame(path, partial(_scene, path, module)) for path, module in found], "positions")


@torch.inference_mode()
def _scene(path: str, module: nn.Module) -> Scene:
    if isinstance(module, Rotary):
        return _rotary(path, module)
    if isinstance(module, SinusoidalPositions | LearnedPositions):
        return _vectors(path, module)
    return _bias(path, module)


def _vectors(path: str, module: SinusoidalPositions | LearnedPositions) -> Scene:
    weight: torch.Tensor = module.weight  # type: ignore[assignment]
    vectors = module(0, min(NUM_POSITIONS, len(weight))).float().cpu().numpy()
    kind = "learned" if isinstance(module, LearnedPositions) else "sinusoidal"
    title = f"positions: {kind} vectors, {path}"
    caption = "One row a position, one column a number of its vector. Below, the mean dot product of positions d apart."
    high, said = end_of_shades(vectors)
    caption += said
    matrix = _heat_map(vectors[:, :MAX_WIDTH], f"{kind} positions", -high, high)
    curve = mean_products(vectors)
    return _assembled(title, caption, matrix, _chart(matrix, [curve], "dot product", [QUERY]))


def end_of_shades(vectors: np.ndarray) -> tuple[float, str]:
    """The darkest shade: the largest number, or where a few are far larger than all others, a percentile, and words."""
    sizes = np.abs(vectors)
    most, usual = float(sizes.max()), float(np.percentile(sizes, PERCENTILE))
    if most <= OUTLIER * usual:
        return most, ""
    return usual, f" The darkest is {usual:.2g} or more ({PERCENTILE:g} % are below); the largest is {most:.2g}."


def mean_products(vectors: np.ndarray) -> np.ndarray:
    """The mean of p_i · p_j over all pairs of positions (T, D) that are d apart, for each d from 0."""
    products = vectors @ vectors.T
    return np.array([np.diagonal(products, distance).mean() for distance in range(len(vectors))])


def _rotary(path: str, module: Rotary) -> Scene:
    frequencies: torch.Tensor = module.frequencies  # type: ignore[assignment]
    angles = module(torch.arange(NUM_POSITIONS, device=frequencies.device))
    pairs = angles.cosine.shape[-1] // 2
    cosine = angles.cosine[..., :pairs].reshape(NUM_POSITIONS, pairs).float().cpu().numpy()
    title = f"positions: rotary, {path}"
    caption = (
        "The cosine of the angle by which each pair of a head is rotated. Below, q · k of equal vectors d apart, "
        "as a share."
    )
    matrix = _heat_map(cosine, "cosine of the angles", -1.0, 1.0)
    ones = torch.ones(1, 1, NUM_POSITIONS, 2 * pairs).to(angles.cosine)
    rotated = angles.apply_rotary(ones)[0, 0].float().cpu()
    curve = (rotated @ rotated[0] / (2 * pairs)).numpy()
    return _assembled(title, caption, matrix, _chart(matrix, [curve], "q · k", [QUERY]), columns="pair")


def _bias(path: str, module: nn.Module) -> Scene:
    """T5's bias for each head and distance: that of the last query of a row of keys, and of the first."""
    bias = module(NUM_POSITIONS, NUM_POSITIONS)[0].float().cpu().numpy()  # (H, T, S)
    back = bias[:, -1, ::-1]  # key d before the query
    title = f"positions: relative bias on the scores, {path}"
    caption = "One row a head, one column a distance: what is added to the score of a key that is d before the query."
    high = float(np.abs(bias).max())
    matrix = Matrix(
        LEFT,
        TOP + 12,
        CHART[0] / NUM_POSITIONS,
        12,
        back,
        [f"head {head}" for head in range(len(back))],
        [str(distance) for distance in range(NUM_POSITIONS)],
        "diverging",
        -high,
        high,
        name="bias",
    )
    return _assembled(title, caption, matrix, _chart(matrix, list(back), "bias", [QUERY, KEY]), "head", "distance")


def _heat_map(values: np.ndarray, name: str, low: float, high: float) -> Matrix:
    rows, columns = ([str(number) for number in range(size)] for size in values.shape)
    sizes = CHART[0] / values.shape[1], 200 / len(values)
    return Matrix(LEFT, TOP + 12, *sizes, values, rows, columns, "diverging", low, high, name=name)


def _assembled(
    title: str, caption: str, matrix: Matrix, chart: Block, rows: str = "position", columns: str = "number"
) -> Scene:
    """The heat map with the names of its axes, and the chart below it."""
    last = matrix.y + matrix.height
    items: list[Item] = [
        *heading(title, caption),
        matrix,
        *in_drawing(_edges(matrix, rows, columns)),
        *chart.items,
    ]
    width = max(LEFT + CHART[0] + 24, heading_width(title, caption))
    return Scene(width, last + chart.height + 10, items, title, caption)


def _edges(matrix: Matrix, rows: str, columns: str) -> list[Item]:
    """The names of both sides, and the first and the last number."""
    last = matrix.y + matrix.height
    size = len(matrix.values)
    return [
        Text(LEFT, matrix.y - 7, f"{columns} →", size=8, color=FAINT),
        Text(LEFT + matrix.width, matrix.y - 7, str(matrix.values.shape[1] - 1), size=8, color=FAINT, anchor="right"),
        Text(LEFT - 14, (matrix.y + last) / 2, f"← {rows}", 8, FAINT, "center", rotated=True),
        Text(LEFT - 4, matrix.y + matrix.cell_height / 2, "0", 8, FAINT, "right"),
        Text(LEFT - 4, last - matrix.cell_height / 2, str(size - 1) if size > 1 else "", 8, FAINT, "right"),
    ]


def _chart(above: Matrix, curves: Sequence[np.ndarray], name: str, colors: Sequence[str]) -> Block:
    """Lines over the distance from 0, below the heat map."""
    top, (wide, high) = above.y + above.height + 24, CHART
    low, most = min(0.0, *(float(one.min()) for one in curves)), max(float(one.max()) for one in curves)
    scale = high / max(most - low, 1e-12)
    zero = top + most * scale
    items: list[Item] = [
        Line([(LEFT, top), (LEFT, top + high), (LEFT + wide, top + high)], RULE),
        Line([(LEFT, zero), (LEFT + wide, zero)], RULE, dashed=True),
        Text(LEFT - 4, top, f"{most:.3g}", 8, FAINT, "right", title=f"{most:.6g}"),
        Text(LEFT - 4, top + high, f"{low:.3g}", 8, FAINT, "right", title=f"{low:.6g}"),
        Text(LEFT, top - 9, name, 8, INK),
        Text(LEFT + wide / 2, top + high + 10, "distance", 8, FAINT, "center"),
        Text(LEFT, top + high + 10, "0", 8, FAINT, "center"),
        Text(LEFT + wide, top + high + 10, str(len(curves[0]) - 1), 8, FAINT, "center"),
    ]
    for number, curve in enumerate(curves):
        across = wide / max(len(curve) - 1, 1)
        points = [(LEFT + at * across, zero - float(value) * scale) for at, value in enumerate(curve)]
        label = f"head {number}: " if len(curves) > 1 else ""
        values = ", ".join(f"{value:.6g}" for value in curve[:8])
        items.append(Line(points, colors[number % len(colors)], 1.4, title=f"{label}{values}, …"))
    return Block(in_drawing(items), LEFT + wide, high + 24 + 20)


def _missing(info: TraceInfo) -> str | None:
    return None if any(one.kind in KINDS for one in info.modules) else "it has no position encoding"


VIEW = View("positions", "the position encodings, and how alike two positions are", draw, (), _missing, static=True)
