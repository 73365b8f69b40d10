"""The application that the commands register with, and what several of them take."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="regard",
    help="Train, run, measure and look inside sequence models with attention.",
    epilog="Begin with `regard demo`. Every command has examples: `regard train --help`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ModelFolder = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model folder: ours, Hugging Face's, a name on its hub, or a .gguf file."),
]
Beams = Annotated[
    int | None, typer.Option(help="Texts kept side by side; 1 is greedy.", show_default="the model's own: mostly 1")
]
Precision = Annotated[str, typer.Option(help="float32, or int8: several times faster on a CPU, a little less exact.")]


def _show_versions(wanted: bool) -> None:
    if wanted:
        versions = (f"{name} {version(name)}" for name in ("regard", "torch"))
        print(f"{', '.join(versions)}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    versions: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_versions, help="Show the versions and stop.")
    ] = False,
) -> None:
    if debug:
        os.environ["REGARD_DEBUG"] = "1"


def split(arguments: list[str]) -> tuple[list[Path], list[str]]:
    """Files and settings: a setting is a dotted name, an equals sign, a value."""
    settings = [word for word in arguments if re.match(r"[A-Za-z_][\w.]*=", word) and not Path(word).exists()]
    return [Path(word) for word in arguments if word not in settings], settings
