"""`regard page`: look inside models in a browser."""

import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from regard.cli.app import Device, DType, Precision, Trust, app, trust_code
from regard.errors import ConfigError


@app.command()
def page(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[MODEL]...", help="Model folders, runs in progress, or reports of `regard compare`."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; not loopback: with an API key only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    precision: Precision = "float32",
    device: Device = "auto",
    dtype: DType = "float32",
    trust: Trust = False,
) -> None:
    """Look inside models in a browser: where they look, what they compute, and what changes it. Without a model it
    opens the lessons, on the lectures' own numbers.

    Examples:

    `regard page`

    `regard page runs/demo runs/gpt runs/vqa`

    `regard page runs/in-progress --no-browser --port 8000`
    """
    paths = models or []
    trust_code(trust, *paths)
    from regard.server.models import ModelTable
    from regard.server.settings import ServerSettings
    from regard.server.viewing.run import serve_page
    from regard.server.viewing.watched import is_model, watched_folder

    try:
        settings = ServerSettings(host=host, port=port, api_key=os.environ.get("REGARD_API_KEY") or None)
    except ValidationError as error:
        raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error

    def open_model(path: Path):  # type: ignore[no-untyped-def]
        from regard.runtime import prepare
        from regard.tasks.loading import load_with_task

        return load_with_task(path, precision=precision, runtime=prepare(device, dtype, precision=precision))

    watched = [found for path in paths if (found := watched_folder(path)) is not None]
    served = [path for path in paths if watched_folder(path) is None or is_model(path)]
    serve_page(ModelTable(served, open_model), settings, watched, browser=browser)
