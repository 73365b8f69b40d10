"""`regard export`: write a model in the format of another library."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, ModelFolder, Trust, app, trust_code
from regard.printing import print_json, show


@app.command()
def export(
    model: ModelFolder,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    to: Annotated[str, typer.Option("--to", help="The format: huggingface.")] = "huggingface",
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as a Hugging Face folder, which `transformers` opens and CTranslate2 converts.

    Example: `regard export runs/mine out/ --to huggingface`
    """
    from regard.tasks.export import export_folder

    trust_code(trust, model)
    written = export_folder(model, output, to)
    if as_json:
        print_json({"folder": str(output), "files": written})
    else:
        show(f"{output}: {', '.join(written)}")
