"""Recipes: reproducible runs. One file = one run, a function that returns its settings.

Its docstring says the command, the time it takes and the number to expect. A new recipe is one line here.
"""

import ast
import difflib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.tasks.recipe import Recipe

# name -> the module whose RECIPE it is; modules are imported when they are asked for, so that a list needs no torch
RECIPES = {
    "translator": "regard.recipes.translator",
    "gpt": "regard.recipes.gpt",
    "bert": "regard.recipes.bert",
    "classifier": "regard.recipes.classifier",
    "glue": "regard.recipes.glue",
    "tagger": "regard.recipes.tagger",
    "captioner": "regard.recipes.captioner",
    "vilbert": "regard.recipes.vilbert",
    "vqa": "regard.recipes.vqa",
    "shakespeare-char": "regard.recipes.shakespeare_char",
    "shakespeare-char-large": "regard.recipes.shakespeare_char_large",
    "rnn-translator": "regard.recipes.rnn_translator",
    "rnn-context-translator": "regard.recipes.rnn_context_translator",
    "rnn-attention-translator": "regard.recipes.rnn_attention_translator",
    "conv-translator": "regard.recipes.conv_translator",
    "transformer-translator": "regard.recipes.transformer_translator",
}


def find(name: str) -> "Recipe":
    """The recipe of this name, or an error with the nearest."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(RECIPES)}"
        raise ConfigError(f"no recipe is called {name!r}; {hint} `regard recipes` lists them")
    recipe: Recipe = import_module(RECIPES[name]).RECIPE
    return recipe


def describe() -> dict[str, str]:
    """Each recipe's docstring, read without importing it."""
    found = {}
    for name, module in RECIPES.items():
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        found[name] = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return found


__all__ = ["RECIPES", "describe", "find"]
