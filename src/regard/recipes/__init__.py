"""Recipes: reproducible runs. A recipe is settings; its docstring says the command, the time and the number to expect.

A new recipe is one file and one line here. Recipes of installed packages and of a user's file (`regard train
mine.py:recipe`) are found as well: `regard.extensions`.
"""

import ast
import difflib
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import extensions
from regard.errors import ConfigError, InputError

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
    "ngram": "regard.recipes.language_models:NGRAM",
    "bengio": "regard.recipes.language_models:BENGIO",
    "rnn-lm": "regard.recipes.language_models:RNN",
    "rnn-classifier": "regard.recipes.rnn_readers:CLASSIFIER",
    "rnn-tagger": "regard.recipes.rnn_readers:TAGGER",
    "rnn-translator": "regard.recipes.translator_comparison:RNN",
    "rnn-context-translator": "regard.recipes.translator_comparison:RNN_CONTEXT",
    "rnn-attention-translator": "regard.recipes.translator_comparison:RNN_ATTENTION",
    "conv-translator": "regard.recipes.translator_comparison:CONV",
    "transformer-translator": "regard.recipes.translator_comparison:TRANSFORMER",
}


def find(name: str) -> "Recipe[Any, Any, Any]":
    """The recipe of this name, or of a file: "mine.py:recipe". An error has the nearest names."""
    if extensions.is_code(name):
        return _of_file(name)
    location = extensions.locate("recipes", RECIPES, name)
    if location is None:
        known = list(extensions.names("recipes", RECIPES))
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
        raise ConfigError(f"no recipe is called {name!r}; {hint} `regard recipes` lists them")
    module, _, attribute = location.partition(":")
    recipe: Recipe[Any, Any, Any] = getattr(import_module(module), attribute or "RECIPE")
    return recipe if name in RECIPES else replace(recipe, name=name)


def folder_of(name: str) -> str:
    """The name of the folder that a recipe trains into by default."""
    return extensions.split_name(name)[0].stem if extensions.is_code(name) else name


def _of_file(name: str) -> "Recipe[Any, Any, Any]":
    """The recipe of "mine.py:recipe"; of "mine.py", if it has only one. The file is run."""
    from regard.models import models_of
    from regard.tasks.recipe import Recipe

    path, attribute = extensions.split_name(name)
    file = extensions.run_file(path)
    found = {each: value for each, value in vars(file.module).items() if isinstance(value, Recipe)}
    if not attribute and len(found) == 1:
        attribute = next(iter(found))
    if attribute not in found:
        there = f"it has {', '.join(f'{path}:{each}' for each in found)}" if found else "it has none"
        raise InputError(f"{path} has no recipe {attribute or 'that is the only one'}; {there}")
    models_of(file)  # an error here, before anything is read
    return replace(found[attribute], name=f"{path.name}:{attribute}", code=file)


def describe() -> dict[str, str]:
    """What each recipe says of itself, read without importing it."""
    known = extensions.names("recipes", RECIPES)
    return {name: _docstring(*location.partition(":")[::2]) for name, location in known.items()}


def describe_one(name: str) -> str:
    """What one recipe says of itself; of a user's file, its docstring."""
    if extensions.is_code(name):
        file = extensions.file_named(find(name).name)
        return ((file and file.module.__doc__) or "").strip()
    found = describe()
    if name not in found:
        find(name)  # an error with the nearest name
    return found[name]


def _docstring(module: str, attribute: str) -> str:
    """The string after the assignment of this attribute of a module; without one, the module's docstring."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        match statement, after:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                if name == attribute:
                    return text.strip()
    return ast.get_docstring(tree) or ""


__all__ = ["RECIPES", "describe", "describe_one", "find", "folder_of"]
