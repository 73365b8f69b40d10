"""What the shell completes with TAB: recipes, the settings of the chosen recipe, model folders.

`regard --install-completion` switches it on. The settings of a recipe need torch, which takes seconds to import: they
are kept in the user's cache until regard changes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

RUNS = Path("runs")


def recipes(incomplete: str) -> list[tuple[str, str]]:
    """The names of recipes, each with the first line of its description; and files of one's own."""
    from regard import recipes

    found = [(name, text.splitlines()[0]) for name, text in recipes.describe().items() if name.startswith(incomplete)]
    return found + [(name, "a file of your own") for name in paths(incomplete) if name.endswith((".py", "/"))]


def training_arguments(ctx: typer.Context, incomplete: str) -> list[Any]:
    """Settings of the recipe, and files."""
    keys = settings(str(ctx.params.get("recipe") or ""))
    found: list[Any] = [(f"{key}=", meaning) for key, meaning in keys.items() if key.startswith(incomplete)]
    return found + paths(incomplete)


def models(incomplete: str) -> list[str]:
    """Model folders: in runs/, and in the folder that is being typed; and other files and folders."""
    inside = [str(path) for path in sorted(RUNS.glob("*")) if (path / "config.json").is_file()]
    here = paths(incomplete)
    return [name for name in inside if name.startswith(incomplete) and f"{name}/" not in here] + here


def paths(incomplete: str) -> list[str]:
    """Files and folders that begin so; a folder ends with a slash."""
    typed = Path(incomplete)
    parent = typed if incomplete.endswith("/") or not incomplete else typed.parent
    start = "" if incomplete.endswith("/") else typed.name
    if not parent.is_dir():
        return []
    found = sorted(path for path in parent.iterdir() if path.name.startswith(start))
    shown = (path for path in found if start.startswith(".") or not path.name.startswith("."))
    return [f"{path}/" if path.is_dir() else str(path) for path in shown]


def settings(recipe: str) -> dict[str, str]:
    """The keys of a recipe and their meanings; empty for an unknown recipe, or one of a file, which is not run here."""
    from regard.data.stores.cache import cache_folder
    from regard.files import read_json
    from regard.recipes import RECIPES

    if recipe not in RECIPES:
        return {}
    kept = cache_folder() / "completion" / f"{recipe}-{_newest_change()}.json"
    try:
        return {str(key): str(meaning) for key, meaning in read_json(kept).items()}
    except Exception:  # not there yet, or damaged
        return _keep(kept, recipe)


def _keep(file: Path, recipe: str) -> dict[str, str]:
    from regard.recipes.reference import settings_of_recipe

    found = {one.key: one.meaning for one in settings_of_recipe(recipe)}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.glob(f"{recipe}-*.json"):
            old.unlink()
        file.write_text(json.dumps(found), encoding="utf-8")
    except OSError:  # completion works without it, only slower
        pass
    return found


def _newest_change() -> int:
    """When a file of regard changed last."""
    return max(_changes(Path(__file__).parents[1]))


def _changes(folder: Path) -> Iterator[int]:
    return (path.stat().st_mtime_ns for path in folder.rglob("*.py"))
