"""`regard export`: write a model in the format of another library."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, ModelFolder, Trust, app, trust_code
from regard.printing import print_json, show


@app.command()
def export(
    model: ModelFolder,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder or .gguf file to write.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="The format: huggingface or gguf.",
            show_default="gguf for OUT.gguf or with --precision, else huggingface",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            help="Of the matrices in a GGUF file: float32, float16, int8 (Q8_0) or int4 (Q4_0).",
            show_default="float32",
        ),
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as a Hugging Face folder, which `transformers` opens and CTranslate2 converts, or a language model
    as a GGUF file, which llama.cpp and ollama open.

    Examples:

    `regard export runs/mine out/ --to huggingface`

    `regard export runs/novel novel.gguf --precision int8`
    """
    from regard.tasks.export import export_model

    trust_code(trust, model)
    written = export_model(model, output, to, precision)
    if as_json:
        print_json({"folder": str(output), "files": written})
    else:
        show(f"{output}: {', '.join(written)}" if output.is_dir() else f"{output}: {output.stat().st_size:,} bytes")
