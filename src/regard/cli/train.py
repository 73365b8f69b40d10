"""Commands that train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.app import AsJson, app, split
from regard.errors import ConfigError
from regard.printing import note_if_slow, print_json, show_scores
from regard.progress import note

if TYPE_CHECKING:
    from regard.tasks.recipe import Given, Recipe
    from regard.training.loop import Report


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where the trained model goes.")] = Path("runs/demo"),
    assignments: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
    as_json: AsJson = False,
) -> None:
    """The tour: train a translator, translate, show where it looked.

    Trains the built-in English→Spanish translator (at most three minutes on two cores), translates sentences it never
    saw, and shows the word alignment here and as a picture. A second time it uses the model that is there.

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
    start: Annotated[
        Path | None, typer.Option("--from", help="A model to begin from, as `regard run` takes it.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Train so many times, into seed-1, seed-2, …: mean and deviation.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model; the same command again goes on where it stopped.

    DATA for a language model is text: any files, .txt or others, each one document; .jsonl and .parquet with a document
    a line or row (data.field=text); patterns such as "books/*.txt". For a translator it is one .tsv or .jsonl file of
    pairs, or two text files that go line by line. .gz and .zst are read as they are. Without DATA gpt learns from the
    Python documentation on this machine, a translator from the built-in world; some recipes need data. Settings are
    dotted: training.steps=200 model.layers=4 data.on_error=skip.

    bert reads the same text: documents with a blank line between them. classifier takes .csv, .tsv, .jsonl and
    .parquet tables, glue a folder of GLUE, tagger CoNLL files; --from is the encoder they begin from. captioner takes
    a folder of pictures and a file of captions, and --from a Hugging Face ViT to see by; without DATA it, vilbert and
    vqa learn from drawn scenes.

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
    from regard.tasks.recipe import Given

    paths, assignments = split(arguments or [])
    found, given = recipes.find(recipe), Given(paths, start)
    target = folder or Path("runs") / recipe
    runtime.prepare()
    note_if_slow()
    if seeds is None:
        last = _train(found, given, assignments, target)
        result: dict[str, Any] = {"folder": str(target), "step": last.step, "validation": last.validation}
        folders = [target]
    else:
        folders = _train_seeds(found, given, assignments, target, seeds)
        result = {"folder": str(target), "seeds": seeds}
    if found.judged or seeds:
        result["scores"] = _scores(folders)
    if as_json:
        print_json(result)
        return
    if found.judged or seeds:
        show_scores(result["scores"])
    example = (found.own_example if paths else "") or found.example
    print(f'{target}: trained. Try: regard run {folders[0]} "{example}"')


def _train(recipe: "Recipe", given: "Given", assignments: list[str], target: Path) -> "Report":
    from regard.progress import follow
    from regard.tasks.recipe import train_recipe

    last = follow(train_recipe(recipe, given, assignments, target))
    if last.stopped:
        note(f"stopped at step {last.step} and saved; the same command goes on from there")
        raise typer.Exit(128 + last.stopped)
    return last


def _train_seeds(recipe: "Recipe", given: "Given", assignments: list[str], target: Path, seeds: int) -> list[Path]:
    """The same run with seeds 1, 2, …, each in a folder of its own."""
    if any(assignment.startswith("training.seed=") for assignment in assignments):
        raise ConfigError(f"--seeds {seeds} takes the seeds 1 to {seeds}; leave training.seed out")
    folders = [target / f"seed-{seed}" for seed in range(1, seeds + 1)]
    for seed, folder in enumerate(folders, 1):
        note(f"seed {seed} of {seeds}")
        _train(recipe, given, [*assignments, f"training.seed={seed}"], folder)
    return folders


def _scores(folders: list[Path]) -> dict[str, Any]:
    """What the trained models reach on what they held out."""
    from regard.tasks.translation.evaluate import score_folders

    return score_folders(folders, [], [None])
