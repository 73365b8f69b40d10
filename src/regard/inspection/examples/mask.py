"""Causal masking on 12 × 12 scores: -inf above the diagonal, then softmax; and the slip of multiplying by -inf."""

import numpy as np
import torch

from regard.inspection.drawing.layout import TOP, Style, labelled
from regard.inspection.drawing.scene import Figure, Frame, Scene, heading
from regard.layers.attention import attend_written_out
from regard.layers.masks import causal_mask

LENGTH = 12
SEED = 3


def draw() -> Figure:
    """Four frames: the scores, the masked scores, the weights, and the scores multiplied by a mask of -inf."""
    generator = torch.Generator().manual_seed(SEED)
    query, key = (torch.randn(LENGTH, 8, generator=generator) for _ in range(2))
    allowed = causal_mask(LENGTH, LENGTH, query.device)
    steps = attend_written_out(query, key, key, allowed)
    factor = torch.zeros(LENGTH, LENGTH).masked_fill(~allowed, -torch.inf)
    multiplied = (steps.scaled * factor).softmax(-1)
    hidden = ~allowed.numpy()
    diverging = Style((34, 20), "diverging", -3.0, 3.0, 2)
    frames = [
        _frame("raw scores", "The scores q · k / √d of 12 queries and 12 keys.", steps.scaled, diverging),
        _frame("masked", "Keys after the query are masked: their score becomes -∞.", steps.scaled, diverging, hidden),
        _frame(
            "softmax", "Each row sums to 1; what was masked has the weight 0.", steps.weights, Style((34, 20)), hidden
        ),
        _frame(
            "multiplied",
            "A slip: multiplied by -∞ instead, a negative score becomes +∞, and its row NaN.",
            multiplied,
            Style((34, 20)),
        ),
    ]
    return Figure(frames, "step", 2)


def _frame(name: str, caption: str, values: torch.Tensor, style: Style, masked: np.ndarray | None = None) -> Frame:
    def scene() -> Scene:
        labels = [str(number) for number in range(LENGTH)]
        block = labelled(8, TOP, values.numpy(), labels, labels, style, masked=masked, name=name)
        title = f"causal mask: {name}"
        return Scene(
            block.width + 24, TOP + block.height + 12, [*heading(title, caption), *block.items], title, caption
        )

    return Frame(name, scene)
