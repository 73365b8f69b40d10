"""Commands that compare kinds of models: what they reach, what they cost."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import completion
from regard.cli.app import AsJson, Trust, app, split, trust_code
from regard.errors import ConfigError
from regard.printing import print_json, show, show_costs, show_model_cost, show_table
from regard.progress import note

LAYER_DEFAULTS = {"width": 128, "heads": 4, "kernel": 3, "longest": 4096}


@app.command()
def compare(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA]... [KEY=VALUE]...", help="Your pairs, then settings.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where runs and report go.", show_default="runs/compare")
    ] = None,
    rungs: Annotated[
        str,
        typer.Option(help="Comma-separated: rnn,rnn-context,rnn-attention,conv,transformer.", show_default="all five"),
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each model with different seeds; mean ± deviation.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A short comparison: under ten minutes on two cores.")] = False,
    memory: Annotated[bool, typer.Option(help="Also run the long-memory test: accuracy by distance.")] = True,
    ablation: Annotated[
        str, typer.Option(help="Instead: one part of a GPT on and off. residual, norm, scale, mask, positions, …")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Train five translators of the same size on the same data, token budget and seeds, and compare them.

    The RNN with its last state, with a fixed context and with attention; the convolutional translator; the Transformer.
    Writes a table (.txt, .json, .csv), a figure (.png, .svg) and report.html into the folder. Finished runs in the
    folder are reused. Without DATA it uses synthetic passages of up to four sentences: about a quarter of an hour a
    seed on two cores. Each model has its own optimizer and learning rate, tuned in a few short runs on the synthetic
    data (not retuned for your DATA); everything else is the same.

    Examples:

    `regard compare --quick`

    `regard compare --seeds 3 -o runs/ladder`

    `regard compare pairs.tsv.gz --rungs rnn,rnn-attention training.steps=3000`

    `regard compare --ablation residual` (or norm, scale, mask, positions, depth, heads; three seeds; a TEXT of yours)
    """
    if ablation:
        _ablate(ablation, arguments or [], folder, as_json)
        return
    from regard.experiments.compare import Stopped, compare_rungs
    from regard.runtime import prepare

    paths, assignments = split(arguments or [])
    chosen = [name.strip() for name in rungs.split(",") if name.strip()]
    folder = folder or Path("runs/compare-quick" if quick else "runs/compare")
    command = shlex.join(["regard", *sys.argv[1:]])
    prepare("cpu")
    try:
        found = compare_rungs(
            folder, paths, assignments, rungs=chosen, seeds=seeds, quick=quick, memory=memory, command=command
        )
    except Stopped as stopped:
        note("stopped and saved; run the same command to resume")
        raise typer.Exit(128 + stopped.signal) from None
    if as_json:
        print_json(found.as_dict())
    else:
        show(found.text)
        note(f"wrote {', '.join(map(str, found.files))}")


def _ablate(name: str, arguments: list[str], folder: Path | None, as_json: bool) -> None:
    """Train a small GPT with a part and without it; write a table, JSON and a figure."""
    from regard.experiments import ablation
    from regard.files import encode_json, write_file
    from regard.inspection.curves import save_curves
    from regard.runtime import prepare

    paths, assignments = split(arguments)
    if assignments or len(paths) > 1:
        raise ConfigError(f"{arguments[-1]}: --ablation takes one text file at most; leave the others out")
    if paths and not paths[0].is_file():
        raise ConfigError(f"{paths[0]}: there is no such file; give a text, or none for generated sentences")
    ablation.variants_of(name)
    prepare("cpu")
    text = paths[0].read_text(encoding="utf-8", errors="replace") if paths else ablation.synthetic_text()
    rows = []
    for variant, row in ablation.run(name, text):
        rows.append(row)
        note(f"{variant}: loss {row.loss:.3f}")
    folder = folder or Path("runs") / f"ablation-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "ablation.json", encode_json({"ablation": name, "rows": ablation.as_dict(rows)}))
    save_curves([ablation.panel(name, rows)], folder / "ablation.png")
    if as_json:
        print_json({"ablation": name, "claim": ablation.ABLATIONS[name][0], "rows": ablation.as_dict(rows)})
        return
    show(f"The claim: {ablation.ABLATIONS[name][0]}.")
    show_table(ablation.table(rows))
    note(f"wrote {folder / 'ablation.json'} and {folder / 'ablation.png'}")


MeasuredModel = Annotated[
    Path | None,
    typer.Argument(
        metavar="[MODEL]", help="A model folder; none: a layer of each kind.", autocompletion=completion.models
    ),
]


AssignmentsOption = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="With --world: settings of the recipe.")
]
WidthOption = Annotated[
    int | None, typer.Option(min=2, help="Layer width d, without MODEL.", show_default=f"{LAYER_DEFAULTS['width']}")
]
HeadsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Heads h of self-attention, without MODEL.", show_default=f"{LAYER_DEFAULTS['heads']}"),
]
KernelOption = Annotated[
    int | None,
    typer.Option(
        min=2, help="Kernel size k of the convolution, without MODEL.", show_default=f"{LAYER_DEFAULTS['kernel']}"
    ),
]
LongestOption = Annotated[
    int | None,
    typer.Option(
        min=128, max=32_768, help="Largest n; the smallest is 32.", show_default=f"{LAYER_DEFAULTS['longest']}"
    ),
]
BatchOption = Annotated[int | None, typer.Option(min=1, help="Batch size, with MODEL.", show_default="8")]
SourceOption = Annotated[
    int | None,
    typer.Option(min=1, help="Source length in tokens, with MODEL.", show_default="128, or half its context"),
]
TargetOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Target length in tokens, with a MODEL that generates.", show_default="128, or half its context"
    ),
]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="The curves as .png, .svg or .pdf.")]
WorldOption = Annotated[str, typer.Option(help="Plan to train the recipe MODEL with so many ranks: 8, or 8,64,1024.")]
DeviceOption = Annotated[str, typer.Option(help="With --world: v100, a100, h100, rtx4090 or mi300x.")]
DtypeOption = Annotated[str, typer.Option(help="With --world: bfloat16, float16 or float32.")]
RanksPerHostOption = Annotated[int, typer.Option(min=1, help="With --world.")]


@app.command()
def cost(
    model: MeasuredModel = None,
    assignments: AssignmentsOption = None,
    width: WidthOption = None,
    heads: HeadsOption = None,
    kernel: KernelOption = None,
    longest: LongestOption = None,
    batch: BatchOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    output: OutputOption = None,
    world: WorldOption = "",
    device: DeviceOption = "a100",
    dtype: DtypeOption = "bfloat16",
    ranks_per_host: RanksPerHostOption = 8,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """What recurrence, convolution and self-attention cost: the formula beside the measurement.

    Without MODEL: time and memory of a layer of each kind over the length n, the fitted power of n beside the predicted
    one, where recurrence and self-attention cross, and N² + M² + NM counted. With MODEL: parameters, multiply-adds,
    attention matrices, and the memory that decoding keeps (the key-value cache). With --world, MODEL is a recipe: will
    it fit on so many accelerators, sharded or not, and how long is a step? Memory is simulated, --batch rows a rank.

    Examples:

    `regard cost -o cost.png`

    `regard cost gpt model.size=gpt2-xl --world 8,64,1024 --device a100 --batch 4`

    `regard cost runs/demo --batch 32 --source 512 --target 512`
    """
    if world:
        _plan(
            str(model or "gpt"), assignments or [], world, (device, dtype, ranks_per_host), batch or 8, source, as_json
        )
        return
    if assignments:
        raise ConfigError(f"{assignments[0]} is a setting of a recipe, with --world; leave it out")
    from regard.experiments.layer_cost import cost_of_layers
    from regard.experiments.model_cost import cost_of_model
    from regard.inspection.heat_map import check_figure
    from regard.runtime import prepare

    of_layers = {"width": width, "heads": heads, "kernel": kernel, "longest": longest}
    of_model = {"batch": batch, "source": source, "target": target}
    for name, value in (of_layers | {"output": output} if model is not None else of_model).items():
        if value is not None:
            form = "of the layers, leave MODEL out" if model is not None else "of a MODEL, name one"
            raise ConfigError(f"--{name} {value} is {form}")
    if output is not None:
        check_figure(output)
    layers = LAYER_DEFAULTS | {name: value for name, value in of_layers.items() if value is not None}
    if layers["width"] % layers["heads"]:
        raise ConfigError(f"--width {layers['width']} does not divide into --heads {layers['heads']}")
    prepare("cpu")
    if model is not None:
        trust_code(trust, model)
        rows = cost_of_model(model, batch=batch or 8, source=source, target=target)
        print_json([asdict(row) for row in rows]) if as_json else show_model_cost(rows)
        return
    costs = cost_of_layers(**layers, output=output, note=note)
    if as_json:
        print_json(asdict(costs))
    else:
        show_costs(costs)


def _plan(
    recipe: str,
    assignments: list[str],
    world: str,
    machine: tuple[str, str, int],
    rows: int,
    tokens: int | None,
    as_json: bool,
) -> None:
    """Memory, communication and time of a training step on machines that are not here."""
    from regard import recipes
    from regard.experiments import planning
    from regard.runtime import DTYPES, prepare
    from regard.tasks.recipe import TrainingInputs

    device, dtype, ranks_per_host = machine
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype {dtype}: wanted {', '.join(DTYPES)}")
    worlds, there = planning.worlds_of(world), planning.device_named(device)
    prepare("cpu")
    run = recipes.find(recipe).settings(TrainingInputs())
    config = planning.planned_config(run, assignments, f"regard recipes {recipe} --settings")
    context: int = getattr(config, "context", 128) if tokens is None else tokens
    request = planning.Request(config, worlds, there, DTYPES[dtype], rows, context, ranks_per_host)
    found = planning.plan(request)
    if as_json:
        print_json([asdict(row) for row in found])
        return
    show_table(planning.table(found, there))
    note(planning.assumptions(request))
