"""Attention as lines: the queries in a column to the left, the keys to the right, a line for each large weight."""

from collections.abc import Sequence

import numpy as np

from regard.inspection.drawing.colors import KEY, QUERY, hexadecimal, shade, text_on
from regard.inspection.drawing.layout import GAP, MIN_LABEL, Block, widest
from regard.inspection.drawing.scene import Item, Line, Rectangle, Text, in_drawing
from regard.inspection.maps.labels import text_width

LEAST = 0.02  # the smallest weight that has a line
MOST = 400  # lines of a drawing: those of the largest weights
BETWEEN = 130.0  # the columns of queries and keys
RULE = f"Lines: weights of at least {LEAST}"  # for captions; see `rule`


def rule(weights: np.ndarray) -> str:
    """Which weights have a line, in words for a caption."""
    many = int((weights >= LEAST).sum()) > MOST
    return f"{RULE}, the {MOST} largest" if many else RULE


def linked(
    x: float, y: float, queries: Sequence[str], keys: Sequence[str], weights: np.ndarray, row: float = 20.0
) -> Block:
    """Both columns of labels, each label `row` high, and the lines of one head with weights (queries, keys)."""
    size = min(9.0, max(row * 0.6, MIN_LABEL))
    left = x + widest(queries, size) + GAP
    right = left + BETWEEN
    items = lines((left, right), y + row / 2, row, queries, keys, weights)
    items += [Text(left - GAP, y + (n + 0.5) * row, one, size, QUERY, "right") for n, one in enumerate(queries)]
    items += [Text(right + GAP, y + (n + 0.5) * row, one, size, KEY) for n, one in enumerate(keys)]
    return Block(in_drawing(items), right + GAP + widest(keys, size) - x, row * max(len(queries), len(keys)))


def shaded_sentence(
    x: float, y: float, tokens: Sequence[str], weights: np.ndarray, width: float, *, outlined: Sequence[int] = ()
) -> Block:
    """Tokens in lines of at most this width, each as dark as its weight; `outlined` are the numbers of some."""
    items: list[Item] = []
    size, row, across, down, most = 11.0, 22.0, x, y, 0.0
    colors = shade(weights, "key", 0.0, top_of(weights))
    for number, token in enumerate(tokens):
        wide = text_width(token, size) + 8
        if across > x and across + wide > x + width:
            across, down = x, down + row
        frame, title = QUERY if number in outlined else None, f"{token}: {weights[number]:.6g}"
        items.append(Rectangle(across, down, wide, row - 4, hexadecimal(colors[number]), frame, 2.0, title=title))
        items.append(Text(across + wide / 2, down + row / 2 - 2, token, size, text_on(colors[number]), "center"))
        across += wide + 3
        most = max(most, across - x)
    return Block(in_drawing(items), most, down + row - y)


def top_of(weights: np.ndarray) -> float:
    """The weight that is drawn darkest: the largest one, but weights that are all alike stay pale."""
    return max(float(weights.max()), min(1.0, 4 / weights.shape[-1]))


def lines(
    ends: tuple[float, float],
    y: float,
    row: float,
    queries: Sequence[str],
    keys: Sequence[str],
    weights: np.ndarray,
    color: str = QUERY,
    name: str = "",
) -> list[Item]:
    """A curved line for each large weight, the largest on top; `y` is the middle of the first label."""
    order = np.argsort(weights, axis=None)[::-1][:MOST][::-1]
    found: list[Item] = []
    for query, key in zip(*np.unravel_index(order, weights.shape), strict=True):
        weight = float(weights[query, key])
        if weight >= LEAST:
            points = [(ends[0], y + query * row), (ends[1], y + key * row)]
            title = f"{name}{queries[query]} → {keys[key]}: {weight:.6g}"
            width = 0.4 + 3.0 * weight
            found.append(Line(points, color, width, min(1.0, 0.08 + weight), curved=True, title=title))
    return found
