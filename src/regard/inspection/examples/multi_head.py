"""Several heads against one: two relations of "it" that one softmax averages and two heads keep apart."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.inspection.capture import capture
from regard.inspection.drawing.colors import FAINT, INK
from regard.inspection.drawing.equations import SIGN, Part, equations
from regard.inspection.drawing.layout import GAP, MARGIN, TOP, Block, framed
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text
from regard.layers.attention import MultiHeadAttention

SENTENCE = ("The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired")
IT = SENTENCE.index("it")
FEATURES = ("thing", "state", "pronoun", "other")
# What a word is, set by hand; all others are "other".
WORDS = {
    "animal": (1.0, 0.0, 0.0, 0.0),
    "street": (0.6, 0.0, 0.0, 0.0),
    "tired": (0.0, 1.0, 0.0, 0.0),
    "it": (0.0, 0.0, 1.0, 0.0),
}
# Rows are features; columns are the two numbers of head 0 and the two of head 1. A pronoun asks head 0 for things and
# head 1 for states; a value says which of the two a word is.
W_Q = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
W_K = torch.tensor([[3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
W_V = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
RAMPS = {1: ("grey",), 2: ("query", "key")}  # one color a head
CELL = (46.0, 22.0)
LEFT = 78.0  # the names of heads
LABELS = 16.0  # above a matrix
APART = 18.0


def draw() -> Figure:
    """Two frames: the weights and the outputs of "it", and the matrices that make them."""
    return Figure([Frame("it", _it), Frame("matrices", _matrices)], "figure")


@torch.inference_mode()
def attended(heads: int) -> tuple[Tensor, Tensor]:
    """The weights (heads, keys) and the output (4) of "it": the same matrices split into one head or two."""
    width = len(FEATURES)
    attention = MultiHeadAttention(width, heads, bias=False)
    weights = {"query": W_Q.T, "key": W_K.T, "value": W_V.T, "output": torch.eye(width)}
    attention.load_state_dict({f"{name}.weight": weight for name, weight in weights.items()})
    hidden = torch.tensor([[WORDS.get(word, (0.0, 0.0, 0.0, 1.0)) for word in SENTENCE]])
    with capture(attention, "weights") as captured:
        output = attention.self_attend(hidden)
    return captured["weights"][0][0, :, IT], output[0, IT]


def _it() -> Scene:
    title = "one head against two: what “it” attends to"
    caption = "The same matrices. One softmax has to share its weight between “animal” and “tired”; two heads need not."
    top = _weights(TOP, 1)
    middle = _weights(TOP + top.height + APART, 2)
    below = TOP + top.height + middle.height + 2 * APART
    bottom = _outputs(below)
    items = [*top.items, *middle.items, *bottom.items]
    return framed(title, caption, items, max(top.width, bottom.width), below + bottom.height - TOP)


def _weights(y: float, heads: int) -> Block:
    """The weights of "it" in each head, below the words."""
    weights, _ = attended(heads)
    items: list[Item] = _labels(MARGIN + LEFT, y, SENTENCE)
    for head, ramp in enumerate(RAMPS[heads]):
        at, name = y + LABELS + head * (CELL[1] + GAP), "one head" if heads == 1 else f"head {head}"
        values = weights[head : head + 1].numpy()
        items.append(Matrix(MARGIN + LEFT, at, *CELL, values, ["it"], SENTENCE, ramp, digits=2, name=name))
        items.append(Text(MARGIN, at + CELL[1] / 2, name, 9, INK, bold=True))
    return Block(items, LEFT + CELL[0] * len(SENTENCE), LABELS + heads * (CELL[1] + GAP) - GAP)


def _outputs(y: float) -> Block:
    """The output of "it" with one head and with two; what the reader should see is to the right of each."""
    columns = ("thing", "state") * 2
    items: list[Item] = _labels(MARGIN + LEFT, y, columns)
    remarks = {
        1: "a mixture of “animal” and “tired”, the same in both halves",
        2: "the first half is nearly “animal”, the second nearly “tired”",
    }
    for number, (heads, remark) in enumerate(remarks.items()):
        _, output = attended(heads)
        at, name = y + LABELS + number * (CELL[1] + GAP), "z, one head" if heads == 1 else "z, two heads"
        values = output[None].numpy()
        matrix = Matrix(MARGIN + LEFT, at, *CELL, values, ["z"], columns, "value", 0.0, 1.6, digits=2, name=name)
        items += [matrix, Text(MARGIN, at + CELL[1] / 2, name, 9, INK, bold=True)]
        items.append(Text(matrix.x + matrix.width + 2 * GAP, at + CELL[1] / 2, remark, 8, FAINT))
    return Block(items, LEFT + CELL[0] * len(SENTENCE), LABELS + 2 * (CELL[1] + GAP) - GAP)


def _labels(x: float, y: float, labels: Sequence[str]) -> list[Item]:
    return [Text(x + (n + 0.5) * CELL[0], y + LABELS / 2, one, 9, INK, "center") for n, one in enumerate(labels)]


def _matrices() -> Scene:
    title = "one head against two: the matrices"
    caption = "Rows are features of a word. One head uses all four columns; of two heads, each has its own two."
    columns = ("h0", "h0", "h1", "h1")
    made = (("W_Q", W_Q, "query"), ("W_K", W_K, "key"), ("W_V", W_V, "value"))
    items: list[Item] = []
    x, height = MARGIN, 0.0
    for name, one, ramp in made:
        part = Part(
            name, one.numpy(), ramp, FEATURES, columns, ends=(0, 4), has_labels=True, digits=0, colors=(INK, INK)
        )
        block = equations(x, TOP, [[part]])
        items += block.items
        x, height = x + block.width + SIGN, block.height
    return framed(title, caption, items, x - SIGN - MARGIN, height)
