"""`regard serve`: models over HTTP."""

import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from regard.cli.app import Device, DType, Precision, Trust, app, trust_code
from regard.errors import ConfigError


@app.command()
def serve(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL...", help="Model folders of regard or Hugging Face, or .gguf files."),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; not loopback: with an API key only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")] = 8000,
    precision: Precision = "stored",
    device: Device = "auto",
    dtype: DType = "float32",
    trust: Trust = False,
) -> None:
    """Serve models over HTTP, by OpenAI's API and by one of our own. A model's name is the last part of its path.

    With the environment variable REGARD_API_KEY, clients must send that key.

    Examples:

    `regard serve runs/gpt runs/demo`

    `regard serve smollm2.gguf --port 9000`

    `curl http://127.0.0.1:8000/v1/models`
    """
    trust_code(trust, *models)
    from regard.server.models import ModelTable
    from regard.server.run import serve as run_server
    from regard.server.settings import ServerSettings

    try:
        settings = ServerSettings(host=host, port=port, api_key=os.environ.get("REGARD_API_KEY") or None)
    except ValidationError as error:
        raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error

    def open_model(path: Path):  # type: ignore[no-untyped-def]
        from regard.runtime import prepare
        from regard.tasks.loading import load_with_task

        return load_with_task(path, precision=precision, runtime=prepare(device, dtype, precision=precision))

    run_server(ModelTable(models, open_model), settings)
