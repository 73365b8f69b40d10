"""Attention without parameters, softmax(X Xᵀ) X, on five word vectors."""

from dataclasses import replace

import torch

from regard.inspection.drawing.colors import INK
from regard.inspection.drawing.equations import Part, equations
from regard.inspection.drawing.layout import MARGIN, TOP, framed
from regard.inspection.drawing.scene import Figure, Scene
from regard.layers.attention import Dot, Steps, attend_written_out

PLAIN = (INK, INK)  # labels that are neither queries nor keys
FEATURES = ("animal", "place", "feeling")
# Set by hand, so that related words point in one direction.
WORDS = {
    "animal": (2.0, 0.0, 0.5),
    "dog": (2.0, 0.0, 1.0),
    "street": (0.0, 2.0, 0.0),
    "road": (0.0, 1.8, 0.2),
    "tired": (0.8, 0.0, 1.5),
}


def draw() -> Figure:
    """One drawing: X Xᵀ, its softmax, and the outputs."""
    return Figure.of(_scene())


def attended() -> Steps:
    """Attention in which the vectors are their own queries, keys and values, without a scale."""
    vectors = torch.tensor(list(WORDS.values()))
    return attend_written_out(vectors, vectors, vectors, similarity=Dot())


def _scene() -> Scene:
    title = "attention without parameters: Y = softmax(X Xᵀ) X"
    caption = (
        "A word attends to similar words and moves towards them. Nothing here can learn; all features count alike."
    )
    words, steps = list(WORDS), attended()
    vectors = torch.tensor(list(WORDS.values())).numpy()
    x = Part("X", vectors, "grey", words, FEATURES, ends=(0, 2.2), has_labels=True, digits=1, colors=PLAIN)
    transposed = Part("Xᵀ", vectors.T, "grey", FEATURES, words, ends=(0, 2.2), sign="×", digits=1, colors=PLAIN)
    similar = Part("similarity", steps.scores.numpy(), "query", words, words, ends=(0, 6), sign="=", digits=1)
    weights = Part("softmax", steps.weights.numpy(), "query", words, words, ends=(0, 1), has_labels=True)
    y = Part("Y", steps.output.numpy(), "value", words, FEATURES, ends=(0, 2.2), sign="=", colors=PLAIN)
    block = equations(MARGIN, TOP, [[x, transposed, similar], [weights, replace(x, sign="×", has_labels=False), y]])
    return framed(title, caption, block.items, block.width, block.height)
