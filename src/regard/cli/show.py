"""`regard show`: look inside a model."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import completion
from regard.cli.app import AsJson, Device, DType, Trust, app, trust_code
from regard.errors import InputError
from regard.printing import print_json
from regard.progress import note

HELP = """Look inside a model: attention, heads, queries and keys, the KV cache, positions, masks; or at a figure of the
lectures that needs no model. Without -o it is drawn in the terminal.

Examples:

`regard show runs/bert "the animal didn't cross the street because it was too tired" --token it`

`regard show runs/demo "the red house is big" --view heads -o heads.svg`

`regard show runs/gpt "Once upon a time" --view next`

`regard show runs/captioner photo.png -o attention.html`

`regard show runs/vqa scene.png "what color is the circle ?" --view coattention`

`regard show --example positions -o positions.png`

`regard show runs/demo --list`
"""


@app.command(help=HELP)
def show(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model folder, or a trace that `regard trace` wrote.",
            autocompletion=completion.models,
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="[INPUT]...", help="A text, or an image and a text about it.")
    ] = None,
    view: Annotated[str | None, typer.Option(help="What to look at; default: what says most about the model.")] = None,
    example: Annotated[
        str | None, typer.Option(help="A figure of the lectures, without a model: positions, mask, …")
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the views and the inner values of the model; without one, all.")
    ] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A .png, .svg, .pdf or .html file.")] = None,
    token: Annotated[str | None, typer.Option(help="A token or a word of the text, or the number of a token.")] = None,
    attention: Annotated[str | None, typer.Option(help='A pattern of paths: "decoder.*.cross_attention".')] = None,
    layer: Annotated[int | None, typer.Option(help="A layer of these, from 0.")] = None,
    head: Annotated[int | None, typer.Option(help="A head, from 0.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="Generate this many tokens first.")] = None,
    target: Annotated[str | None, typer.Option(help="Look at this translation or caption, not the model's.")] = None,
    boxes: Annotated[Path | None, typer.Option(help="Bounding boxes of the image, as JSON.")] = None,
    temperature: Annotated[float, typer.Option(min=0.01, help="With --view next.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="With --view next.")] = None,
    top_p: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="With --view next.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="With --view next: how many tokens to show.")] = 10,
    off: Annotated[list[str] | None, typer.Option(help="Switch off a head: PATH:HEAD; several are allowed.")] = None,
    device: Device = "auto",
    dtype: DType = "float32",
    gold: Annotated[str | None, typer.Option(help='Gold word alignment "0-0 1-2 2?3", or a file with it.')] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Look inside a model: attention, heads, queries and keys, the KV cache, positions, masks."""
    from regard.cli import showing
    from regard.inspection.views.base import Choices
    from regard.tasks.base import TraceRequest

    trust_code(trust, *([] if model is None else [Path(model)]))
    choices = Choices(attention, layer, head, token, temperature, top_k, top_p, limit, *showing.read_gold(gold))
    request = TraceRequest(inputs or [], max_new_tokens, target, boxes, off or ())
    if output is not None:
        showing.check_output(output)
    if example is not None:
        if model is not None:
            raise InputError(f"--example {example} needs no model; leave {model} out")
        showing.check_alone(f"--example {example} takes -o and --json", choices, request, view)
        figure = showing.example(example)
    elif listing:
        showing.check_alone("--list takes a model and --json", choices, request, view, output)
        showing.print_list(None if model is None else Path(model), as_json)
        return
    elif model is None:
        raise InputError("nothing to show; give a model and an input, or --example positions; see --list")
    else:
        figure = showing.view(Path(model), request, view, choices, device, dtype)
    for line in figure.notes:
        note(line)
    if output is not None:
        figure.save(output)
        note(f"wrote {output}")
    elif as_json:
        print_json(showing.to_data(figure))
    else:
        showing.print_figure(figure)
