"""A catalog of movies as a soft look-up: the query is a wish, the keys are attributes, the values what is returned."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from regard.inspection.drawing.colors import INK, RAMPS
from regard.inspection.drawing.layout import GAP, MARGIN, TOP, Style, framed, labelled, widest
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text
from regard.layers.attention import Dot, Steps, attend_written_out

ATTRIBUTES = ("space", "action", "comedy", "romance", "cartoon")
FACTS = {"year": (1960.0, 2040.0), "minutes": (40.0, 300.0)}  # fact -> the ends of its ramp
# movie -> its key (how much of each attribute it has, set by hand), and its value
MOVIES = {
    "Alien": ((1.0, 0.5, 0.0, 0.0, 0.0), (1979.0, 117.0)),
    "The Matrix": ((0.0, 1.0, 0.0, 0.0, 0.0), (1999.0, 136.0)),
    "Airplane!": ((0.0, 0.0, 1.0, 0.5, 0.0), (1980.0, 88.0)),
    "Titanic": ((0.0, 0.5, 0.0, 1.0, 0.0), (1997.0, 194.0)),
    "Toy Story": ((0.0, 0.5, 1.0, 0.0, 1.0), (1995.0, 81.0)),
    "WALL-E": ((1.0, 0.0, 0.5, 1.0, 1.0), (2008.0, 98.0)),
}
# wish -> its query: how much each attribute matters
WISHES = {
    "a cartoon to laugh at": (0.0, 0.0, 3.0, 0.0, 3.0),
    "love in space": (4.0, 0.0, 0.0, 4.0, 0.0),
    "action or romance": (0.0, 3.0, 0.0, 3.0, 0.0),
    "no wish at all": (0.0, 0.0, 0.0, 0.0, 0.0),
}
CELL = (44.0, 18.0)
APART = 22.0
NAME = 14.0  # above the labels of columns
LABELS = 15.7  # the labels of columns; see `labelled`
SMALLEST = 0.005  # a weight that is not rounded to 0.00


def draw() -> Figure:
    """One frame a wish."""
    return Figure([Frame(wish, partial(_scene, wish)) for wish in WISHES], "query")


def catalog() -> tuple[Tensor, Tensor]:
    """The keys (movies, attributes) and the values (movies, facts)."""
    keys, values = zip(*MOVIES.values(), strict=True)
    return torch.tensor(keys), torch.tensor(values)


def look_up(wish: str) -> Steps:
    """The query of a wish against all keys."""
    return attend_written_out(torch.tensor([WISHES[wish]]), *catalog(), similarity=Dot())


def _scene(wish: str) -> Scene:
    title = f"a catalog as a soft look-up: {wish}"
    caption = "The wish (query) is compared with the attributes of each movie (key); the weights mix the values."
    (keys, values), steps = catalog(), look_up(wish)
    left = MARGIN + widest(list(MOVIES)) + GAP
    down = TOP + NAME + LABELS + CELL[1] + APART  # where the catalog begins
    last = down + NAME + LABELS + CELL[1] * len(MOVIES) + APART
    scores = left + CELL[0] * len(ATTRIBUTES) + APART
    weights = scores + CELL[0] + APART
    facts = weights + CELL[0] + APART
    query = torch.tensor([WISHES[wish]])
    items: list[Item] = [
        *_table("query", (left, TOP), query, ["wish"], ATTRIBUTES, Style(CELL, "query", 0, 5, 0)),
        *_table("keys", (left, down), keys, list(MOVIES), ATTRIBUTES, Style(CELL, "key", 0, 1.6, 1)),
        *_table("scores", (scores, down), steps.scores.T, [], ["q · k"], Style(CELL, "query", 0, 10, 1)),
        *_table("weights", (weights, down), steps.weights.T, [], ["softmax"], Style(CELL, "query", 0, 1, 2)),
        Text(left, last + NAME + LABELS + CELL[1] / 2, _mixture(steps.weights[0]), 10, INK),
    ]
    for number, (fact, ends) in enumerate(FACTS.items()):
        x, style = facts + number * CELL[0], Style(CELL, "value", *ends, 0)
        items += _table("" if number else "values", (x, down), values[:, number, None], [], [fact], style)
        items += _table("" if number else "returned", (x, last), steps.output[:, number, None], [], [fact], style)
    return framed(title, caption, items, facts + len(FACTS) * CELL[0] - MARGIN, last + NAME + LABELS + CELL[1] - TOP)


def _table(
    name: str, place: tuple[float, float], values: Tensor, rows: Sequence[str], columns: Sequence[str], style: Style
) -> list[Item]:
    """A matrix whose first column begins at x, its labels to the left and above, and its name on top."""
    x, y = place
    names = rows or (list(MOVIES) if len(values) > 1 else ["returned"])  # for titles
    named = replace(style, colors=(RAMPS[style.ramp][2],) * 2)
    block = labelled(x - widest(rows) - GAP, y + NAME, values.numpy(), rows, columns, named, name=name or columns[0])
    titled = [replace(item, rows=names) if isinstance(item, Matrix) else item for item in block.items]
    return [*titled, Text(x, y + NAME / 2, name, 10, RAMPS[style.ramp][2], bold=True)]


def _mixture(weights: Tensor) -> str:
    """In words: which movies are returned, the largest weight first."""
    order = weights.argsort(descending=True, stable=True).tolist()
    parts = [f"{weights[number]:.2f} {list(MOVIES)[number]}" for number in order if weights[number] >= SMALLEST]
    return "returned: " + " + ".join(parts[:3]) + (" + …" if len(parts) > 3 else "")
