"""The reference page of all settings, docs/reference/settings.md: `regard recipes --settings --markdown`.

Settings stand once, by the class that has them; a recipe is the list of its classes and of what it sets differently.
"""

from collections.abc import Iterator
from typing import Any

from regard.config import Config
from regard.recipes import RECIPES, find
from regard.settings import Setting, settings_of
from regard.tasks.recipe import TrainingInputs

SECTIONS = ("model", "task", "data", "training")
HEAD = """# Settings

Each setting of `regard train RECIPE … KEY=VALUE`, with its meaning, type, range and default. `regard recipes RECIPE
--settings` prints those of one recipe, with its defaults. This page is written by
`regard recipes --settings --markdown > docs/reference/settings.md`.

Lists are written with commas: `task.negatives=1,2`; nothing is `none`. A setting below `special_ids` is the
tokenizer's: leave it out.
"""


def settings_of_recipe(name: str) -> list[Setting]:
    """The settings of a recipe, with its defaults."""
    return settings_of(find(name).settings(TrainingInputs()))


def page() -> str:
    """The reference page, as Markdown."""
    runs = {name: find(name).settings(TrainingInputs()) for name in RECIPES}
    lines = [HEAD, "## By recipe\n"]
    for name, run in runs.items():
        lines += [f"### {name}\n", *_recipe(run), ""]
    classes = {(section, type(config).__name__): config for run in runs.values() for section, config in _sections(run)}
    for (section, name), config in sorted(classes.items(), key=lambda one: SECTIONS.index(one[0][0])):
        lines += [f"## {section}: {name}\n", *_table(section, config), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _sections(run: Any) -> Iterator[tuple[str, Config]]:
    for section in SECTIONS:
        yield section, getattr(run, section)


def _recipe(run: Any) -> Iterator[str]:
    """The classes of a recipe's sections, each with what the recipe sets differently from the class."""
    for section, config in _sections(run):
        name = type(config).__name__
        usual = {one.key: one.default for one in _of_class(section, config)}
        settings = settings_of(config, f"{section}.")
        own = [f"`{one.key}={one.default}`" for one in settings if usual[one.key] != one.default]
        yield f"- [{section}: {name}](#{section}-{name.lower()})" + (f": {', '.join(own)}" if own else "")


def _of_class(section: str, config: Config) -> list[Setting]:
    """The settings of a config's class, with the defaults of the class; where it has none, those of this config."""
    required = {name: getattr(config, name) for name, field in type(config).model_fields.items() if field.is_required()}
    return settings_of(type(config)(**required), f"{section}.")


def _table(section: str, config: Config) -> Iterator[str]:
    settings = _of_class(section, config)
    if not settings:
        yield "There is nothing to set."
        return
    yield "| key | meaning | type | default |"
    yield "|---|---|---|---|"
    for one in settings:
        cells = (f"`{one.key}`", one.meaning, one.type_and_range, f"`{one.default}`" if one.default else "")
        escaped = [cell.replace("|", r"\|") for cell in cells]
        yield f"| {' | '.join(escaped)} |"
