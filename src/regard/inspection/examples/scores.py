"""The lecture's scores 112, 96, 16 and 8: divided by √64 and through softmax; and what goes wrong without."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.inspection.drawing.colors import FAINT, INK
from regard.inspection.drawing.equations import Part, equations
from regard.inspection.drawing.layout import MARGIN, TOP, Block, bars, framed
from regard.inspection.drawing.scene import Figure, Frame, Item, Scene, Text
from regard.layers.attention import Dot, ScaledDot, Similarity, Steps, attend_written_out

SCORES = (112.0, 96.0, 16.0, 8.0)
WIDTH = 64  # of a query and a key
QUIZ = 2  # the quiz has the words "Thinking" and "Machines" alone
NAME = 18.0  # the room of a name above bars
APART = 10.0


def draw() -> Figure:
    """Three frames: the steps, softmax with and without √d, and the answers of the quiz on two words."""
    frames = [Frame("steps", _steps), Frame("with and without √d", _with_and_without), Frame("quiz", _quiz)]
    weights = ", ".join(f"{weight:.4f}" for weight in attended(torch.tensor(SCORES), ScaledDot()).weights[0].tolist())
    return Figure(
        frames, "figure", notes=[f"one lecture rounds the weights to .87, .12, .01 and 0; they are {weights}"]
    )


def attended(scores: Tensor, similarity: Similarity) -> Steps:
    """Attention of one query whose dot products with the keys are these scores."""
    query, keys = torch.ones(1, WIDTH), (scores / WIDTH)[:, None].expand(-1, WIDTH)
    return attend_written_out(query, keys, torch.eye(len(scores)), similarity=similarity)


def quiz_answers() -> dict[str, Tensor]:
    """The weights of the four answers, by how one gets them; (c) is right."""
    scores = torch.tensor(SCORES[:QUIZ])
    right = attended(scores, ScaledDot()).weights[0]
    return {
        "(a) wrong: the mean, whatever the scores": torch.full_like(scores, 1 / len(scores)),
        "(b) wrong: each score divided by their sum, 112 / (112 + 96); there is no softmax": scores / scores.sum(),
        "(c) right: softmax of 112 / √64 and 96 / √64": right,
        "(d) wrong: the same with the words swapped": right.flip(0),
    }


def _steps() -> Scene:
    title = "the scores 112, 96, 16 and 8 of one query"
    steps = attended(torch.tensor(SCORES), ScaledDot())
    sums = " + ".join(f"{weight:.2f} v{number}" for number, weight in enumerate(steps.weights[0].tolist(), 1))
    caption = "The dot products of q1 and four keys, divided by √64 = 8, then softmax: the weights sum to 1."
    keys = [f"k{number}" for number in range(1, len(SCORES) + 1)]
    parts = [
        Part("q1 · k", steps.scores.numpy(), "query", ["q1"], keys, ends=(0, max(SCORES)), has_labels=True, digits=0),
        Part("÷ √64", steps.scaled.numpy(), "query", ["q1"], keys, ends=(0, max(SCORES) / 8), sign="→", digits=0),
        Part("softmax", steps.weights.numpy(), "query", ["q1"], keys, ends=(0, 1), sign="→", digits=2),
    ]
    block = equations(MARGIN, TOP, [parts])
    output = Text(MARGIN, TOP + block.height + NAME, f"z1 = {sums}", 11, bold=True)
    return framed(title, caption, [*block.items, output], block.width, block.height + NAME + APART)


def _with_and_without() -> Scene:
    title = "softmax of the scores with and without √d"
    caption = "Without √64 softmax saturates: the first word takes all, and the others get neither weight nor gradient."
    scores = torch.tensor(SCORES)
    words = [f"v{number}" for number in range(1, len(SCORES) + 1)]
    groups = {
        "softmax(q · k / √64)": attended(scores, ScaledDot()).weights[0],
        "softmax(q · k)": attended(scores, Dot()).weights[0],
    }
    block = _groups(words, groups, list(groups)[:1], "{:.7f}")
    return framed(title, caption, block.items, block.width, block.height)


def _quiz() -> Scene:
    title = "quiz: the output for “Thinking”, whose scores are 112 and 96"
    caption = "The bars are the weights of v1 (Thinking) and v2 (Machines) in each answer."
    answers = quiz_answers()
    right = [name for name in answers if "right" in name]
    block = _groups(["v1", "v2"], answers, right, "{:.2f}")
    return framed(title, caption, block.items, block.width, block.height)


def _groups(labels: Sequence[str], groups: dict[str, Tensor], right: Sequence[str], number: str) -> Block:
    """Bars from 0 to 1 for each group, below its name; those that are not right are grey."""
    items: list[Item] = []
    y, width = TOP, 0.0
    for name, values in groups.items():
        faint = [name not in right] * len(labels)
        block = bars(MARGIN, y + NAME, labels, values.tolist(), width=240, faint=faint, high=1.0, number=number)
        items += [Text(MARGIN, y + NAME / 2, name, 9, FAINT if faint[0] else INK, bold=not faint[0]), *block.items]
        y, width = y + NAME + block.height + APART, max(width, block.width)
    return Block(items, width, y - APART - TOP)
