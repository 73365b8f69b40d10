"""Commands about folders and recipes."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, ModelFolder, app
from regard.printing import print_json, show_facts


@app.command()
def export(
    model: ModelFolder,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to make.")],
    to: Annotated[str, typer.Option("--to", help="The format: huggingface.")] = "huggingface",
    as_json: AsJson = False,
) -> None:
    """Write a model for other programs: a folder that `transformers` opens and CTranslate2 converts.

    Example: `regard export runs/mine out/ --to huggingface`
    """
    from regard.tasks.export import export_folder

    written = export_folder(model, output, to)
    if as_json:
        print_json({"folder": str(output), "files": written})
    else:
        print(f"{output}: {', '.join(written)}")


@app.command()
def info(model: ModelFolder, as_json: AsJson = False) -> None:
    """What a model folder holds: kind, size, settings, files; every file is verified.

    Example: `regard info runs/demo`
    """
    from regard.tasks.describe import describe_folder

    facts = describe_folder(model)
    if as_json:
        print_json(facts)
    else:
        show_facts(facts)


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="One recipe, with all it says.")] = None, as_json: AsJson = False
) -> None:
    """The recipes: what can be trained, how long it takes, which number to expect.

    Example: `regard recipes translator`
    """
    from regard import recipes

    found = recipes.describe()
    if name is not None and name not in found:
        recipes.find(name)
    if as_json:
        print_json(found if name is None else {name: found[name]})
    elif name is not None:
        print(found[name])
    else:
        for each, text in found.items():
            print(f"{each:<{max(map(len, found)) + 2}}{text.splitlines()[0]}")
