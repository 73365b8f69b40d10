"""The commands `train` and `demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.app import AsJson, app, split
from regard.errors import ConfigError
from regard.printing import note_if_slow, print_json, show, show_metrics
from regard.progress import note

if TYPE_CHECKING:
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


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="What to train; `regard recipes` lists them.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA]... [KEY=VALUE]...", help="Your files, then settings.")
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
    as_json: AsJson = False,
) -> None:
    """Train a model; the same command again resumes the run.

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

    `regard train captioner photos/ captions.jsonl -o runs/captions`
    """
    from regard import recipes, runtime
    from regard.tasks.recipe import TrainingInputs

    paths, assignments = split(arguments or [])
    found, inputs = recipes.find(recipe), TrainingInputs(paths, pretrained)
    target = folder or Path("runs") / recipe
    runtime.prepare()
    note_if_slow()
    result: dict[str, Any] = {"folder": str(target)}
    if seeds is None:
        last = _train(found, inputs, assignments, target)
        result |= {"step": last.step, "validation": last.validation}
        folders = [target]
    else:
        folders = _train_seeds(found, inputs, assignments, target, seeds)
        result["seeds"] = seeds
    if found.evaluate_at_end or seeds:
        result["scores"] = _scores(folders)
    if as_json:
        print_json(result)
        return
    if "scores" in result:
        show_metrics(result["scores"])
    example = (found.own_example if paths else "") or found.example
    show(f'{target}: trained. Try: regard run {folders[0]} "{example}"')


def _train(recipe: "Recipe[Any, Any, Any]", inputs: "TrainingInputs", assignments: list[str], target: Path) -> "Report":
    from regard.progress import follow
    from regard.tasks.recipe import train_recipe

    last = follow(train_recipe(recipe, inputs, assignments, target))
    if last.stopped:
        note(f"stopped at step {last.step} and saved; the same command resumes the run")
        raise typer.Exit(128 + last.stopped)
    return last


def _train_seeds(
    recipe: "Recipe[Any, Any, Any]", inputs: "TrainingInputs", assignments: list[str], target: Path, seeds: int
) -> list[Path]:
    """The same run with seeds 1, 2, …, each in its own folder."""
    if any(assignment.startswith("training.seed=") for assignment in assignments):
        raise ConfigError(f"--seeds {seeds} uses the seeds 1 to {seeds}; leave training.seed out")
    folders = [target / f"seed-{seed}" for seed in range(1, seeds + 1)]
    for seed, folder in enumerate(folders, 1):
        note(f"seed {seed} of {seeds}")
        _train(recipe, inputs, [*assignments, f"training.seed={seed}"], folder)
    return folders


def _scores(folders: list[Path]) -> dict[str, Any]:
    """The metrics of the trained models on their held-out data."""
    from regard.tasks.evaluation import evaluate_folders

    return evaluate_folders(folders, [], [None])
