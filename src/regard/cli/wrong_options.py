"""What to say of an option that does not exist: its new name, or the setting that it is."""

import difflib
import sys
from collections.abc import Sequence

from typer.exceptions import TyperException

from regard.renamed import OPTIONS

# What other programs call a setting.
SYNONYMS = {"lr": "training.learning_rate", "batch_size": "training.max_tokens", "max_steps": "training.steps"}


def explain(error: TyperException) -> str:
    """One line for the user; empty: there is nothing better to say than typer does."""
    return _renamed(error) or _setting(error, sys.argv[1:])


def _renamed(error: TyperException) -> str:
    now = OPTIONS.get(getattr(error, "option_name", ""))
    context = getattr(error, "ctx", None)
    known = {name for parameter in context.command.params for name in parameter.opts} if context else set()
    return f"{error.option_name} is now {now}" if now in known else ""  # type: ignore[attr-defined]


def _setting(error: TyperException, words: Sequence[str]) -> str:
    """Of `train` and `demo`: --steps 10 is the setting training.steps=10."""
    option = getattr(error, "option_name", "")
    if words[:1] not in (["train"], ["demo"]) or not option.startswith("-"):
        return ""
    keys = _keys(words)
    name = option.lstrip("-").replace("-", "_")
    leaves = {key: key.rpartition(".")[2] for key in keys}
    found = [key for key, leaf in leaves.items() if name in (leaf, key)] or [
        key for key in keys if key == SYNONYMS.get(name)
    ]
    if not found and not getattr(error, "possibilities", None):
        near = difflib.get_close_matches(name, leaves.values(), n=1, cutoff=0.8)
        found = [key for key, leaf in leaves.items() if near and leaf == near[0]]
    if not found:
        return ""
    key = min(found, key=lambda one: one.count("."))  # model.dropout before model.vit.dropout
    return f"there is no option {option}; it is a setting: {key}={_value(option, words) or keys[key]}"


def _keys(words: Sequence[str]) -> dict[str, str]:
    """The keys of the recipe in this command line, with their defaults; without a known one, those of training."""
    from regard.recipes import RECIPES
    from regard.recipes.reference import settings_of_recipe
    from regard.settings import settings_of
    from regard.training.config import TrainingConfig

    name = "translator" if words[0] == "demo" else next((word for word in words if word in RECIPES), None)
    found = settings_of_recipe(name) if name else settings_of(TrainingConfig(), "training.")
    return {one.key: one.default for one in found}


def _value(option: str, words: Sequence[str]) -> str:
    """What the user typed for an option: --steps 10, --steps=10."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            return "" if after.startswith("-") else after
    return ""
