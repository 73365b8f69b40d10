"""The demo: train a small translator on synthetic sentences, translate, and show its attention."""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from regard import recipes
from regard.errors import TrainingError
from regard.generation import Beam
from regard.inspection.heat_map import save_heat_map, terminal_heat_map
from regard.progress import follow
from regard.runtime import prepare
from regard.synthetic.translation.sentences import sentences
from regard.tasks.evaluation import evaluate_folders
from regard.tasks.loading import load
from regard.tasks.recipe import TrainingInputs, train_recipe

EXAMPLE = "we are eating bread"
MINUTES = 2.95  # time limit; on a slower machine the learning-rate schedule is shortened with it
PICTURE = "alignment.png"
STRATEGY = Beam(4)


def run_demo(folder: Path, assignments: Sequence[str], *, quiet: bool = False) -> dict[str, Any]:
    """Train, unless the folder has a trained model, and show; returns what was shown. `quiet`: print nothing."""
    console = Console(quiet=quiet, highlight=False)
    runtime = prepare()
    recipe = recipes.find("translator")
    assignments = [f"training.minutes={MINUTES}", *assignments]
    sys.stderr.write("Training an English→Spanish Transformer on synthetic sentences.\n")
    last = follow(train_recipe(recipe, TrainingInputs(), assignments, folder, runtime))
    if last.stopped:
        sys.stderr.write(f"stopped at step {last.step} and saved; `regard demo` resumes the run\n")
        raise KeyboardInterrupt
    translator = load(folder, device=str(runtime.device))
    unseen = [EXAMPLE, *(pair.source for pair in islice(sentences(6, start=100, split="validation"), 6))]
    console.print("\n[bold]Sentences it was not trained on[/bold]")
    answers = translator.run_all(unseen, STRATEGY, alignment=True)
    for answer in answers:
        console.print(f"  {answer.source}\n    [green]{answer.text}[/green]")
    found = answers[0].alignment
    if found is None:
        raise TrainingError("the translation is empty: it was trained for too few steps")
    console.print("\n[bold]Attention[/bold] (each row is a word of the translation)")
    console.print(terminal_heat_map(found.words, found.target_words, found.source_words), soft_wrap=True)
    picture = folder / PICTURE
    save_heat_map(found.words, found.target_words, found.source_words, picture)
    scores = evaluate_folders([folder], [], [STRATEGY], runtime=runtime)
    console.print(
        f"\nOn {scores['pairs']:,} held-out sentences, {STRATEGY.num_beams} beams: "
        f"[bold]{scores['exact_match']:.1%}[/bold] exactly right, "
        f"BLEU {scores['bleu']:.1f}, alignment error rate {scores['alignment_error_rate']:.3f}.",
        soft_wrap=True,
    )
    console.print(
        f"The picture is {picture}. Next:\n"
        f'  regard run {folder} "the red house is small" --alignment\n'
        f"  regard check {folder}\n"
        f"  regard train translator your-pairs.tsv -o runs/mine"
    )
    return {
        "folder": str(folder),
        "picture": str(picture),
        "scores": scores,
        "translations": {answer.source: answer.text for answer in answers},
    }
