"""`regard trace`: write the inner values of one pass to a file."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, Device, DType, ModelFolder, Trust, app, trust_code
from regard.printing import print_json
from regard.progress import note


@app.command()
def trace(
    model: ModelFolder,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="A text, or an image and a text about it.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .safetensors file to write.")],
    taps: Annotated[list[str] | None, typer.Option(help="Only values whose path matches; several are allowed.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="Generate this many tokens first.")] = None,
    target: Annotated[str | None, typer.Option(help="Look at this translation or caption, not the model's.")] = None,
    boxes: Annotated[Path | None, typer.Option(help="Bounding boxes of the image, as JSON.")] = None,
    off: Annotated[list[str] | None, typer.Option(help="Switch off a head: PATH:HEAD; several are allowed.")] = None,
    device: Device = "auto",
    dtype: DType = "float32",
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write every named inner value of one pass to a safetensors file, with the tokens it belongs to. `regard show`
    opens it; so does anything that reads safetensors.

    Examples:

    `regard trace runs/gpt "Once upon a time" -o trace.safetensors`

    `regard trace runs/demo "we are eating bread" --taps "*.weights" -o weights.safetensors`

    `regard show trace.safetensors --view heads`
    """
    from regard.cli.showing import open_model
    from regard.inspection.trace import check_trace_path
    from regard.tasks.base import TraceRequest
    from regard.tasks.show import trace as record

    check_trace_path(output)
    trust_code(trust, model)
    task, pipeline = open_model(model, device, dtype)
    found = record(task, pipeline, TraceRequest(inputs, max_new_tokens, target, boxes, off or []), taps or ["*"])
    found.save(output)
    size = output.stat().st_size
    note(f"wrote {output}: {len(found.values)} values, {size / 1e6:.1f} MB")
    if as_json:
        print_json({"file": str(output), "values": {name: list(v.shape) for name, v in found.values.items()}})
