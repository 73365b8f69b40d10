"""Train the five translators of the comparison on the same data, tokens and seeds, and collect their metrics.

Finished runs are reused, so that a comparison can be stopped and resumed, or get more seeds.
"""

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.checkpoint import SETTINGS
from regard.config import Config, override
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.pairs import read_pairs
from regard.errors import ConfigError
from regard.experiments.layer_cost import kept_bytes
from regard.files import read_json
from regard.generation import Greedy
from regard.models import build
from regard.recipes.translator_comparison import SPECS, recipe_of
from regard.tasks.evaluation import evaluate_folders, mean_of
from regard.tasks.loading import load
from regard.tasks.recipe import TrainingInputs, train_recipe
from regard.tasks.translation.data import TranslationDataConfig
from regard.training.log import METRICS
from regard.training.loop import Report
from regard.training.run_folder import Progress, RunFolder

PAIRS, TOKENS = 32, 20  # the batch whose memory is counted: pairs, and tokens a side
SIMILAR = 0.1  # what two rungs may differ by in parameters

# Draws the progress of one run; gives its last report.
Follow = Callable[[Iterator[Report]], Report]


class Stopped(Exception):  # noqa: N818 - not an error: the user asked for it
    """A run was stopped by a signal and saved; the same command resumes it."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


@dataclass(frozen=True)
class Standing:
    """What one rung reached."""

    rung: str
    parameters: int
    seeds: int
    scores: dict[str, Any]  # of `score`, means over the seeds, with deviations where there are several
    steps: int
    tokens: int  # of the target, seen in training
    learning: str  # optimizer and its peak rate
    training_speed: float  # target tokens a second
    kept_bytes: int  # for the way back, of a batch of PAIRS pairs


def climb(
    folder: Path,
    paths: Sequence[Path],
    assignments: Sequence[str],
    *,
    rungs: Sequence[str],
    seeds: int,
    most: int | None,
    follow: Follow,
    note: Callable[[str], None],
) -> list[Standing]:
    """Train (or find trained) and score every rung; the runs stand in `folder`/RUNG-SEED."""
    for name in rungs:
        _check_name(name)
    for key in (assignment.partition("=")[0].strip() for assignment in assignments):
        if key == "training.seed":
            raise ConfigError("training.seed is the ladder's own: --seeds N takes seeds 1 to N")
        if key in ("training.minutes", "training.epochs", "training.patience"):
            raise ConfigError(f"{key} would give each rung another number of steps; give training.steps")
    if paths:  # a file that cannot be read is said now
        next(read_pairs(paths, on_error="skip", report=BadRows(), longest=TranslationDataConfig().max_length), None)
    inputs = TrainingInputs(paths)
    _check_alike({name: override(recipe_of(name).settings(inputs), assignments).model for name in rungs})
    standings = []
    for name in rungs:
        recipe = recipe_of(name)
        runs = []
        for seed in range(1, seeds + 1):
            run = folder / f"{name}-{seed}"
            settings = [*assignments, f"training.seed={seed}"]
            note(f"{name}, seed {seed} of {seeds}")
            steps = override(recipe.settings(inputs), settings).training.steps
            last = follow(train_recipe(recipe, inputs, settings, run))
            if last.stopped:
                raise Stopped(last.stopped)
            _check_steps(run, steps)
            runs.append(run)
        standings.append(standing(name, runs, most))
    for line in _unlike({one.rung: one.parameters for one in standings}):
        note(f"note: {line}; the text has fewer words than the vocabulary was meant for")
    return standings


def _check_name(name: str) -> None:
    if name not in SPECS:
        raise ConfigError(f"no rung is called {name!r}; there are: {', '.join(SPECS)}")


def _check_alike(configs: dict[str, Config]) -> None:
    """Rungs of different size would compare sizes; said before anything is trained."""
    with torch.device("meta"):
        sizes = {name: _parameters(build(config)) for name, config in configs.items()}
    for line in _unlike(sizes):
        raise ConfigError(f"{line}: too unlike to be compared; leave widths, layers and vocabulary as they are")


def _unlike(sizes: dict[str, int]) -> list[str]:
    least, largest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[largest] <= (1 + SIMILAR) * sizes[least]:
        return []
    return [f"{largest} has {sizes[largest]:,} parameters, {least} {sizes[least]:,}, more than a tenth apart"]


def _check_steps(run: Path, wanted: int) -> None:
    """A run that was trained longer before would be compared with shorter ones."""
    progress = RunFolder(run).newest_progress()
    taken = progress.step if progress else 0
    if taken != wanted:
        raise ConfigError(
            f"{run} has {taken:,} steps, the others get {wanted:,}; "
            f"give training.steps={taken}, or another -o to begin anew"
        )


def _parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def standing(name: str, runs: Sequence[Path], most: int | None) -> Standing:
    """What the trained runs of one rung reach on what they held out."""
    scores = [evaluate_folders([run], [], [Greedy(scored=False)], limit=most) for run in runs]
    model = load(runs[0]).model
    progress = RunFolder(runs[0]).newest_progress() or Progress()
    training = read_json(runs[0] / SETTINGS)["settings"]["training"]
    return Standing(
        name,
        _parameters(model),
        len(runs),
        mean_of(scores),
        progress.step,
        progress.tokens,
        f"{training['optimizer']} {training['learning_rate']:g}",
        statistics.fmean(_training_speed(run) for run in runs),
        _kept_bytes(model),
    )


def _training_speed(run: Path) -> float:
    """The median of what the run wrote down of its speed: a slow minute does not count."""
    lines = (json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines())
    return statistics.median(line["tokens_per_second"] for line in lines if "tokens_per_second" in line)


def _kept_bytes(model: Any) -> int:
    ids = torch.full((PAIRS, TOKENS), model.config.special_ids.eos_id)
    return kept_bytes(lambda: model.train()(ids, ids), model.parameters())
