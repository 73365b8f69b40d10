"""The figures of the lectures from their own numbers, for `regard show --example`: no model is needed."""

from importlib import import_module

from regard.errors import InputError
from regard.inspection.drawing.scene import Figure

# name -> what it shows
EXAMPLES = {
    "mask": "the causal mask on 12 × 12 scores: raw, masked, after softmax; and the slip that makes NaN",
    "positions": "sinusoidal positions 0 to 50 as heat maps, 130 and 512 wide, and some of their curves",
    "binary-positions": "binary codes of 16 positions beside sinusoids, and how far apart neighbors are",
    "scores": "the scores 112, 96, 16 and 8 through √64 and softmax; with and without √d; the quiz",
    "thinking": "Thinking Machines in small numbers: X, Q, K, V, scores, softmax and Z, step by step",
    "softmax-gradient": "why √d: the gradient of softmax against the scale of the scores",
    "xxt": "attention without parameters, softmax(X Xᵀ) X, on five word vectors",
    "movies": "a catalog of movies as a soft look-up: query, keys and values",
    "multi-head": 'one head against two: what "it" attends to',
}


def draw_example(name: str) -> Figure:
    """A figure by its name; InputError with all names for an unknown one."""
    if name not in EXAMPLES:
        raise InputError(f"there is no example {name!r}; wanted one of {', '.join(EXAMPLES)}")
    figure: Figure = import_module(f"regard.inspection.examples.{name.replace('-', '_')}").draw()
    return figure
