"""`regard data`: look at files before training on them."""

from typing import Annotated

import typer

from regard.cli.app import AsJson, app, split
from regard.errors import ConfigError
from regard.printing import print_json, show, show_facts

SETTINGS = {"data.text": "text", "data.second": "second", "data.label": "label"}


@app.command()
def data(
    arguments: Annotated[
        list[str], typer.Argument(metavar="FILE... [KEY=VALUE]...", help="As `regard train` takes it.")
    ],
    as_json: AsJson = False,
) -> None:
    """Look at data before training on it: what the files are, how many examples, their lengths and scripts, classes and
    their balance, duplicates, what would be left out and why, and what to mind.

    Examples:

    `regard data reviews.csv`

    `regard data reviews.csv data.text=body data.label=stars`

    `regard data pairs.tsv.gz`

    `regard data train.de train.en`

    `regard data photos/ captions.jsonl`

    `regard data books/`
    """
    from regard.data.describe import describe_data
    from regard.data.readers.columns import Columns

    paths, assignments = split(arguments)
    if not paths:
        raise ConfigError("name the data to look at: regard data FILE")
    given = dict(one.split("=", 1) for one in assignments)
    for key in given:
        if key not in SETTINGS:
            raise ConfigError(f"{key}: wanted one of {', '.join(SETTINGS)}")
    facts = describe_data(paths, Columns(**{SETTINGS[key]: value for key, value in given.items()}))
    if as_json:
        print_json(facts)
        return
    lines = {name: facts.pop(name, []) for name in ("notes", "warnings")}
    show_facts(facts)
    for line in lines["notes"]:
        show(f"note: {line}" if not line.startswith(" ") else line)
    for line in lines["warnings"]:
        show(f"warning: {line}")
