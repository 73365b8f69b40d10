"""Exercises of the lectures: a skeleton with a blank, and a judge that goes by numbers and laws, never by text.

An exercise is one function to fill in. The judge calls it on seeded cases and compares with the package's own code;
where the answer is that of a known mistake, the message names the mistake. `regard exercise` writes and judges them.
"""

from regard.errors import InputError
from regard.exercises.exercise import Exercise

# name -> the module that has it
EXERCISES = {
    "softmax": "attention",
    "attention": "attention",
    "mask": "attention",
    "multi-head": "attention",
    "cross-attention": "attention",
    "kv-cache": "attention",
    "positions": "blocks",
    "layer-norm": "blocks",
    "feed-forward": "blocks",
    "block": "blocks",
    "recurrence": "blocks",
    "bigram": "language",
    "perplexity": "language",
    "next-token-loss": "language",
    "masked-words": "language",
}


def find(name: str) -> Exercise:
    """An exercise by its name; InputError with all names for an unknown one."""
    from importlib import import_module

    if name not in EXERCISES:
        raise InputError(f"there is no exercise {name!r}; wanted one of {', '.join(EXERCISES)}")
    found: Exercise = import_module(f"regard.exercises.{EXERCISES[name]}").ALL[name]
    return found


__all__ = ["EXERCISES", "Exercise", "find"]
