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
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A name that clients may reach it by (Host header); several are allowed.")
    ] = None,
    max_running: Annotated[int, typer.Option(min=1, max=512, help="Texts that are generated together.")] = 64,
    max_queue: Annotated[int, typer.Option(min=1, help="Requests of a model that may wait; more get 429.")] = 128,
    kv_cache_megabytes: Annotated[int, typer.Option(min=1, help="Memory of a language model's KV cache.")] = 2048,
    request_seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 300,
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="After SIGTERM, how long running requests may take.")
    ] = 30,
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
        settings = ServerSettings(
            host=host,
            port=port,
            api_key=os.environ.get("REGARD_API_KEY") or None,
            allowed_hosts=tuple(allowed_host or ()),
            max_running=max_running,
            max_queue=max_queue,
            kv_cache_megabytes=kv_cache_megabytes,
            request_seconds=request_seconds,
            drain_seconds=drain_seconds,
        )
    except ValidationError as error:
        raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error

    def open_model(path: Path):  # type: ignore[no-untyped-def]
        from regard.runtime import prepare
        from regard.tasks.loading import load_with_task

        return load_with_task(path, precision=precision, runtime=prepare(device, dtype, precision=precision))

    run_server(ModelTable(models, open_model), settings)
