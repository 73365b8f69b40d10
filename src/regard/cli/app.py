"""The typer application that the commands register with, and arguments that several of them share."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import completion
from regard.printing import show

app = typer.Typer(
    name="regard",
    help="Train, run, evaluate and inspect sequence models with attention.",
    epilog="Start with `regard demo`. Every command has examples: `regard train --help`.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ModelFolder = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model folder of regard or Hugging Face, a name on the hub, or a .gguf file.",
        autocompletion=completion.models,
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that a model of somebody's own brings in its folder.")
]
Precision = Annotated[
    str,
    typer.Option(
        help="of the weights: stored (the quantized blocks of a GGUF file, else float32), float32, or int8 or int4: "
        "several times faster on a CPU, less exact."
    ),
]

Device = Annotated[
    str, typer.Option(help="auto, cpu, cuda, cuda:1, mps or xpu; auto: an accelerator, or the CPU if there is none.")
]
DType = Annotated[str, typer.Option("--dtype", help="float32, or bfloat16 or float16: mixed precision.")]


def _show_versions(wanted: bool) -> None:
    if wanted:
        versions = (f"{name} {version(name)}" for name in ("regard", "torch"))
        show(f"{', '.join(versions)}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    versions: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_versions, help="Show the versions and exit.")
    ] = False,
) -> None:
    if debug:
        os.environ["REGARD_DEBUG"] = "1"


def trust_code(trust: bool, *models: Path) -> None:
    """With --trust: run the code that these model folders bring."""
    from regard import extensions

    for model in models if trust else ():
        extensions.trust(model)


def split(arguments: list[str]) -> tuple[list[Path], list[str]]:
    """Split arguments into files and settings, which look like training.steps=200."""
    settings = [word for word in arguments if re.match(r"[A-Za-z_][\w.]*=", word) and not Path(word).exists()]
    return [Path(word) for word in arguments if word not in settings], settings
