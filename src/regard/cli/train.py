"""The commands `train` and `demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import completion
from regard.cli.app import AsJson, Device, DType, Trust, app, split, trust_code
from regard.printing import note_if_slow, print_json, show, show_metrics, show_table
from regard.progress import note

if TYPE_CHECKING:
    from regard.experiments.sweep import Point
    from regard.runtime import Runtime
    from regard.tasks.recipe import Recipe, TrainingInputs
    from regard.training.loop import Report


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where the trained model goes.")] = Path("runs/demo"),
    assignments: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a small translator, translate, and show its attention (3 minutes).

    Trains an English→Spanish translator on synthetic sentences (at most three minutes on two cores), translates
    sentences it was not trained on, and shows the word alignment in the terminal and as a picture. The second time it
    uses the trained model.

    Example: `regard demo -o runs/demo`
    """
    from regard.demo import run_demo

    result = run_demo(folder, assignments or [], quiet=as_json)
    if as_json:
        print_json(result)


HELP = """Train a model; the same command again resumes the run.

DATA for a language model is text: any files, .txt or others, each one document; .jsonl and .parquet with a document
a line or row (data.field=text); patterns such as "books/*.txt". For a translator it is one .tsv or .jsonl file of
pairs, or two parallel text files. .gz and .zst are decompressed. Without DATA gpt trains on the Python
documentation of this machine, a translator on synthetic sentences; some recipes need data. Settings are dotted:
training.steps=200 model.layers=4 data.on_error=skip.

bert reads text too: documents with a blank line between them. classifier takes .csv, .tsv, .jsonl and .parquet
tables, glue a GLUE folder, tagger CoNLL files; --from is the encoder they fine-tune. captioner takes a folder of
images and a file of captions, and --from a Hugging Face ViT as its encoder. Without DATA captioner, vilbert and the
tasks of vilbert (vqa, statements, grounding, retrieval) train on drawn scenes.

Examples:

`regard train gpt novel.txt -o runs/novel`

`regard train gpt "books/*.txt" data.tokenizer=characters -o runs/books`

`regard train gpt novel.txt --from path/to/gpt2 -o runs/novel`

`regard train translator -o runs/t training.steps=500`

`regard train translator pairs.tsv.gz -o runs/mine training.minutes=30`

`regard train translator train.en train.es -o runs/mine data.on_error=skip`

`regard train classifier reviews.csv --from path/to/bert -o runs/sentiment`

`regard train glue SST-2/ --from path/to/bert --seeds 3 -o runs/sst-2`

`regard train gpt novel.txt --grid training.learning_rate=1e-3,3e-3 --seeds 3 -o runs/rates`

`regard train captioner photos/ captions.jsonl -o runs/captions`

`regard train gpt novel.txt -o runs/novel --device cuda --dtype bfloat16`

`regard train mine.py:recipe novel.txt -o runs/mine`
"""


@app.command(help=HELP)
def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="What to train, of `regard recipes`; or your own: mine.py:recipe.", autocompletion=completion.recipes
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]... [KEY=VALUE]...",
            help="Your files, then settings.",
            autocompletion=completion.training_arguments,
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="The run's folder.", show_default="runs/RECIPE")
    ] = None,
    pretrained: Annotated[
        Path | None, typer.Option("--from", help="A pretrained model to start from, as `regard run` takes it.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Train N runs, in seed-1, seed-2, …; report mean and deviation.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Train with each of these values: KEY=VALUE,VALUE; several are combined."),
    ] = None,
    device: Device = "auto",
    dtype: DType = "float32",
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Train a model; the same command again resumes the run."""
    from regard import extensions, recipes
    from regard.cli.inputs.examples import command_to_try
    from regard.experiments.sweep import plan, table
    from regard.runtime import prepare
    from regard.tasks.evaluation import evaluate_folders
    from regard.tasks.recipe import TrainingInputs

    trust_code(trust, *([] if pretrained is None else [pretrained]))
    paths, assignments = split(arguments or [])
    found, inputs = recipes.find(recipe), TrainingInputs(paths, pretrained)
    target = folder or Path("runs") / recipes.folder_of(recipe)
    runtime = prepare(device, dtype)
    note_if_slow(runtime)
    if grid or seeds:
        points = plan(found, inputs, assignments, grid or [], seeds, target)
        result = _train_several(found, inputs, points, target, runtime)
        folders = points[0].folders
    else:
        last = _train(found, inputs, assignments, target, runtime)
        result = {"folder": str(target), "step": last.step, "validation": last.validation}
        folders = [target]
        if found.evaluate_at_end:
            result["scores"] = evaluate_folders(folders, runtime=runtime)
    if as_json:
        print_json(result)
        return
    if "grid" in result:
        show_table(table(result["grid"]))
        note(f"wrote {result['picture']}")
    elif "scores" in result:
        show_metrics(result["scores"])
    command = command_to_try(found, inputs, folders[0], bool(extensions.code_of(folders[0])))
    show(f"{target}: trained. Try: {command}")


def _train(
    recipe: "Recipe[Any, Any, Any]",
    inputs: "TrainingInputs",
    assignments: list[str],
    target: Path,
    runtime: "Runtime",
) -> "Report":
    from regard.progress import follow
    from regard.tasks.recipe import train_recipe

    last = follow(train_recipe(recipe, inputs, assignments, target, runtime))
    if last.stopped:
        note(f"stopped at step {last.step} and saved; the same command resumes the run")
        raise typer.Exit(128 + last.stopped)
    return last


def _train_several(
    recipe: "Recipe[Any, Any, Any]", inputs: "TrainingInputs", points: "list[Point]", target: Path, runtime: "Runtime"
) -> dict[str, Any]:
    """Train all runs of a sweep, or of several seeds; the scores of each point, and a picture of their curves."""
    from regard.experiments import sweep

    runs = [(point, run) for point in points for run in point.runs]
    for number, (point, run) in enumerate(runs, 1):
        seed = f" {run.folder.name}" if len(point.runs) > 1 else ""
        note(f"run {number} of {len(runs)}: {point.name}{seed}")
        _train(recipe, inputs, run.assignments, run.folder, runtime)
    result: dict[str, Any] = {"folder": str(target), "seeds": len(points[0].runs)}
    rows = sweep.score(points, runtime)
    if not points[0].settings:  # seeds alone
        return result | {"scores": rows[0]["scores"]}
    sweep.draw(points, target / sweep.PICTURE)
    return result | {"grid": rows, "picture": str(target / sweep.PICTURE)}
