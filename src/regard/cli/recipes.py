"""`regard recipes`: what can be trained, and with which settings."""

from typing import Annotated

import typer

from regard.cli import completion
from regard.cli.app import AsJson, app
from regard.errors import ConfigError
from regard.printing import print_json, show, show_settings


@app.command()
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(help="Show the whole description of this recipe.", autocompletion=completion.recipes),
    ] = None,
    settings: Annotated[
        bool, typer.Option("--settings", help="Each setting of this recipe: key, meaning, type, range, default.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="With --settings and no recipe: all settings as a page.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the recipes: what can be trained, how long it takes, which scores to expect; and their settings.

    Examples:

    `regard recipes`

    `regard recipes translator`

    `regard recipes gpt --settings`

    `regard recipes mine.py:recipe --settings`
    """
    from regard import recipes

    if settings or markdown:
        _settings(name, markdown, as_json)
        return
    found = recipes.describe() if name is None else {name: recipes.describe_one(name)}
    if as_json:
        print_json(found)
    elif name is not None:
        show(found[name])
    else:
        for each, text in found.items():
            show(f"{each:<{max(map(len, found)) + 2}}{text.splitlines()[0]}")


def _settings(name: str | None, markdown: bool, as_json: bool) -> None:
    """The settings of a recipe, or the page of all."""
    from regard.recipes import reference

    if name is None and markdown and not as_json:
        show(reference.page(), end="")
    elif name is None or markdown:
        raise ConfigError("--settings wants a recipe: regard recipes gpt --settings; of all: --settings --markdown")
    elif as_json:
        print_json([one.as_dict() for one in reference.settings_of_recipe(name)])
    else:
        show_settings([one.as_dict() for one in reference.settings_of_recipe(name)])
