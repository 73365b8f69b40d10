"""Attention as lines: the queries in a column to the left, the keys to the right, a line for each large weight."""

from collections.abc import Sequence

import numpy as np

from regard.inspection.drawing.colors import KEY, QUERY
from regard.inspection.drawing.layout import GAP, Block, widest
from regard.inspection.drawing.scene import Item, Line, Text

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
    size = min(9.0, row * 0.6)
    left = x + widest(queries, size) + GAP
    right = left + BETWEEN
    items = lines((left, right), y + row / 2, row, queries, keys, weights)
    items += [Text(left - GAP, y + (n + 0.5) * row, one, size, QUERY, "right") for n, one in enumerate(queries)]
    items += [Text(right + GAP, y + (n + 0.5) * row, one, size, KEY) for n, one in enumerate(keys)]
    return Block(items, right + GAP + widest(keys, size) - x, row * max(len(queries), len(keys)))


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
