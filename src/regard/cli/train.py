"""Commands that train."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, app, split
from regard.printing import note, print_json


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
    folder: Annotated[Path | None, typer.Option("--output", "-o", help="The run's folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model; the same command again goes on where it stopped.

    DATA for a language model is text: any files, .txt or others, each one document; .jsonl and .parquet with a document
    a line or row (data.field=text); patterns such as "books/*.txt". For a translator it is one .tsv or .jsonl file of
    pairs, or two text files that go line by line. .gz and .zst are read as they are. Without DATA gpt learns from the
    Python documentation on this machine, a translator from the built-in world; some recipes need data. Settings are
    dotted: training.steps=200 model.layers=4 data.on_error=skip.

    Examples:

    `regard train gpt novel.txt -o runs/novel`

    `regard train gpt "books/*.txt" data.tokenizer=characters -o runs/books`

    `regard train translator -o runs/t training.steps=500`

    `regard train translator pairs.tsv.gz -o runs/mine training.minutes=30`

    `regard train translator train.en train.es -o runs/mine data.on_error=skip`
    """
    from regard import recipes, runtime
    from regard.config import override
    from regard.progress import follow
    from regard.recipes.run import train_recipe

    paths, assignments = split(arguments or [])
    found = recipes.find(recipe)
    settings = override(found.settings(paths), assignments)
    target = folder or Path("runs") / recipe
    runtime.prepare()
    last = follow(train_recipe(found, paths, assignments, target), settings.training.steps)
    if last.stopped:
        note(f"stopped at step {last.step} and saved; the same command goes on from there")
        raise typer.Exit(128 + last.stopped)
    if as_json:
        print_json({"folder": str(target), "step": last.step, "heldout": last.heldout})
    else:
        print(f'{target}: trained. Try: regard run {target} "{found.example}"')
