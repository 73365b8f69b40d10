"""`regard recipes`: what can be trained."""

from typing import Annotated

import typer

from regard.cli.app import AsJson, app
from regard.printing import print_json, show


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="Show the whole description of this recipe.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes: what can be trained, how long it takes, which scores to expect.

    Examples:

    `regard recipes`

    `regard recipes translator`
    """
    from regard import recipes

    found = recipes.describe()
    if name is not None and name not in found:
        recipes.find(name)  # an error with the nearest name
    if as_json:
        print_json(found if name is None else {name: found[name]})
    elif name is not None:
        show(found[name])
    else:
        for each, text in found.items():
            show(f"{each:<{max(map(len, found)) + 2}}{text.splitlines()[0]}")
