"""The figures of the lectures from their own numbers, for `regard show --example`: no model is needed."""

from importlib import import_module

from regard.errors import InputError
from regard.inspection.drawing.scene import Figure

# name -> what it shows
EXAMPLES = {
    "mask": "the causal mask on 12 × 12 scores: raw, masked, after softmax; and the slip that makes NaN",
}


def draw_example(name: str) -> Figure:
    """A figure by its name; InputError with all names for an unknown one."""
    if name not in EXAMPLES:
        raise InputError(f"there is no example {name!r}; wanted one of {', '.join(EXAMPLES)}")
    figure: Figure = import_module(f"regard.inspection.examples.{name.replace('-', '_')}").draw()
    return figure
