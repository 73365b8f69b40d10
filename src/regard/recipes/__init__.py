"""Recipes: reproducible runs. A recipe is settings; its docstring says the command, the time and the number to expect.

A new recipe is one file and one line here.
"""

import ast
import difflib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.tasks.recipe import Recipe

# Name -> "module:attribute", RECIPE where no attribute is named. Imported when used, so that a list needs no torch.
RECIPES = {
    "translator": "regard.recipes.translator",
    "summarizer": "regard.recipes.summarizer",
    "gpt": "regard.recipes.gpt",
    "bert": "regard.recipes.bert",
    "classifier": "regard.recipes.classifier",
    "glue": "regard.recipes.glue",
    "tagger": "regard.recipes.tagger",
    "captioner": "regard.recipes.captioner",
    "vilbert": "regard.recipes.vilbert",
    "vqa": "regard.recipes.vilbert_tasks:VQA",
    "statements": "regard.recipes.vilbert_tasks:STATEMENTS",
    "grounding": "regard.recipes.vilbert_tasks:GROUNDING",
    "retrieval": "regard.recipes.vilbert_tasks:RETRIEVAL",
    "shakespeare-char": "regard.recipes.shakespeare_char:SMALL",
    "shakespeare-char-large": "regard.recipes.shakespeare_char:LARGE",
    "rnn-translator": "regard.recipes.translator_comparison:RNN",
    "rnn-context-translator": "regard.recipes.translator_comparison:RNN_CONTEXT",
    "rnn-attention-translator": "regard.recipes.translator_comparison:RNN_ATTENTION",
    "conv-translator": "regard.recipes.translator_comparison:CONV",
    "transformer-translator": "regard.recipes.translator_comparison:TRANSFORMER",
}


def find(name: str) -> "Recipe[Any, Any, Any]":
    """The recipe of this name, or an error with the nearest names."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(RECIPES)}"
        raise ConfigError(f"no recipe is called {name!r}; {hint} `regard recipes` lists them")
    module, _, attribute = RECIPES[name].partition(":")
    recipe: Recipe[Any, Any, Any] = getattr(import_module(module), attribute or "RECIPE")
    return recipe


def describe() -> dict[str, str]:
    """Each recipe's docstring, read without importing it."""
    return {name: _docstring(*location.partition(":")[::2]) for name, location in RECIPES.items()}


def _docstring(module: str, attribute: str) -> str:
    """The docstring of a module, or the string after the assignment of one of its attributes."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    if not attribute:
        return ast.get_docstring(tree) or ""
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        match statement, after:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                if name == attribute:
                    return text.strip()
    return ""


__all__ = ["RECIPES", "describe", "find"]
