"""`regard info`: what a model folder contains, and what computes here."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import completion
from regard.cli.app import AsJson, app
from regard.errors import ConfigError
from regard.printing import print_json, show_facts


@app.command()
def info(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model folder of regard or Hugging Face, a name on the hub, or a .gguf file.",
            autocompletion=completion.models,
        ),
    ] = None,
    system: Annotated[bool, typer.Option("--system", help="Show what computes here: devices, kernels.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the contents of a model folder: kind, size, settings, files. Verifies every file. Or what computes here.

    Examples:

    `regard info runs/demo`

    `regard info path/to/gpt2 --json`

    `regard info --system`
    """
    if system == (model is not None):
        raise ConfigError("wanted a model folder or --system, one of them: regard info runs/demo")
    if model is None:
        from regard.tasks.system import describe_system

        facts = describe_system()
    else:
        from regard.tasks.describe import describe_folder

        facts = describe_folder(model)
    if as_json:
        print_json(facts)
    else:
        show_facts(facts)
