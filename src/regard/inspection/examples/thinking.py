"""Self-attention on "Thinking Machines" in numbers small enough to follow by hand: from X to Z, step by step."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from regard.inspection.drawing.equations import SIGN, Part, equations
from regard.inspection.drawing.layout import MARGIN, TOP, framed
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.layers.attention import Steps, attend_written_out

WORDS = ("Thinking", "Machines")
KEYS = ("k1", "k2")
# Chosen small, to be followed by hand: the lecture draws colored boxes without numbers.
X = torch.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 2.0, 1.0, 1.0]])
W_Q = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
W_K = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
W_V = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]])
# step -> how to read it
STEPS = {
    "1 queries": "A row of X times W_Q is the query of a word: what it looks for.",
    "2 keys": "A row of X times W_K is the key of a word: what it is found by.",
    "3 values": "A row of X times W_V is the value of a word: what it hands on.",
    "4 scores": "A score is the dot product of a query (row) and a key (column).",
    "5 divided by √3": "The scores are divided by √d, the root of the width of a key: √3 = 1.73.",
    "6 softmax": "Softmax makes each row positive, with a sum of 1: the attention weights.",
    "7 outputs": "A row of Z is the sum of the values, each times its weight.",
}
ALL = (
    "Left: queries, keys and values. Right: softmax(Q Kᵀ / √3) V = Z, where k1 is the key of Thinking, k2 of Machines."
)


def draw() -> Figure:
    """One frame a step, and one with all of them, which is the one that a picture shows."""
    frames = [Frame(name, partial(_step, number, name)) for number, name in enumerate(STEPS)]
    return Figure([*frames, Frame("all steps", _all_steps)], "step", len(frames))


def attended() -> tuple[Tensor, Tensor, Tensor, Steps]:
    """Q, K, V and the steps of attention."""
    query, key, value = X @ W_Q, X @ W_K, X @ W_V
    return query, key, value, attend_written_out(query, key, value)


def _step(number: int, name: str) -> Scene:
    block = equations(MARGIN, TOP, [[*_projections(), *_attention()][number]])
    return framed(f"Thinking Machines: {name}", STEPS[name], block.items, block.width, block.height)


def _all_steps() -> Scene:
    products, (scores, _, weighted, outputs) = _projections(), _attention()
    left = equations(MARGIN, TOP, products)
    right = equations(MARGIN + left.width + SIGN, TOP, [scores, weighted, outputs])
    width, height = left.width + SIGN + right.width, max(left.height, right.height)
    return framed("Thinking Machines: all steps", ALL, [*left.items, *right.items], width, height)


def _projections() -> list[list[Part]]:
    """X W = Q, K and V."""
    query, key, value, _ = attended()
    made = (("Q", "query", W_Q, query), ("K", "key", W_K, key), ("V", "value", W_V, value))
    return [
        [
            _part("X", X, "grey", has_labels=True),
            _part(f"W_{name}", weight, ramp, "×", has_words=False),
            _part(name, found, ramp, "="),
        ]
        for name, ramp, weight, found in made
    ]


def _attention() -> list[list[Part]]:
    """The scores, the division, softmax and the outputs."""
    query, key, value, steps = attended()
    keys = Part("Kᵀ", key.T.numpy(), "key", (), KEYS, ends=(0, 5), sign="×", digits=0)
    scores = Part("scores", steps.scores.numpy(), "query", WORDS, KEYS, ends=(0, 10), digits=0)
    divided = Part("scores / √3", steps.scaled.numpy(), "query", WORDS, KEYS, ends=(0, 10))
    weights = Part("softmax", steps.weights.numpy(), "query", WORDS, KEYS, ends=(0, 1))
    outputs = Part("Z", steps.output.numpy(), "value", WORDS, ends=(0, 8), sign="=")
    return [
        [_part("Q", query, "query", has_labels=True), keys, _signed(scores, "=")],
        [_labelled(scores), _signed(divided, "→")],
        [_labelled(divided), _signed(weights, "→")],
        [_labelled(weights), _part("V", value, "value", "×"), outputs],
    ]


def _part(
    name: str, values: Tensor, ramp: str, sign: str = "", *, has_labels: bool = False, has_words: bool = True
) -> Part:
    """A matrix of whole numbers; its rows are the words, but for weights."""
    rows = WORDS if has_words else ()
    return Part(name, values.numpy(), ramp, rows, ends=(0, 5), has_labels=has_labels, sign=sign, digits=0)


def _signed(part: Part, sign: str) -> Part:
    return replace(part, sign=sign)


def _labelled(part: Part) -> Part:
    return replace(part, has_labels=True)
