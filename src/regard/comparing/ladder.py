"""The ladder: the five translators of the road, trained on the same data, tokens and seeds, and what they reach.

A rung that is trained already is used as it is, so that a ladder can be stopped and gone on with, or get more seeds.
"""

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import Facts, override
from regard.data.pairs import BadLines, DataConfig, read_pairs
from regard.errors import ConfigError
from regard.evaluation.cost import kept_bytes
from regard.generation import Greedy
from regard.models import MODELS
from regard.recipes.road import RUNGS, rung
from regard.recipes.run import train_recipe
from regard.running import load
from regard.running.scoring import mean_of, score_folders
from regard.training.log import METRICS
from regard.training.loop import Report

PAIRS, TOKENS = 32, 20  # the batch whose memory is counted: pairs, and tokens a side
SIMILAR = 0.1  # what two rungs may differ by in parameters

# Draws the progress of one run; gives its last report.
Follow = Callable[[Iterator[Report], int], Report]


class Stopped(Exception):  # noqa: N818 - not an error: the user asked for it
    """A run was stopped by a signal and saved; the ladder goes on from there the next time."""

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
    if any(assignment.partition("=")[0].strip() == "training.seed" for assignment in assignments):
        raise ConfigError("training.seed is the ladder's own: --seeds N takes seeds 1 to N")
    if paths:  # a file that cannot be read is said now
        next(read_pairs(paths, on_error="skip", report=BadLines(), longest=DataConfig().longest), None)
    _check_alike({name: override(rung(name).settings(paths), assignments).model for name in rungs})
    standings = []
    for name in rungs:
        recipe = rung(name)
        runs = []
        for seed in range(1, seeds + 1):
            run = folder / f"{name}-{seed}"
            settings = [*assignments, f"training.seed={seed}"]
            note(f"{name}, seed {seed} of {seeds}")
            steps = override(recipe.settings(paths), settings).training.steps
            last = follow(train_recipe(recipe, paths, settings, run), steps)
            if last.stopped:
                raise Stopped(last.stopped)
            runs.append(run)
        standings.append(standing(name, runs, most))
    return standings


def _check_name(name: str) -> None:
    if name not in RUNGS:
        raise ConfigError(f"no rung is called {name!r}; there are: {', '.join(RUNGS)}")


def _check_alike(configs: dict[str, Facts]) -> None:
    """Rungs of different size would compare sizes; said before anything is trained."""
    sizes = {}
    for name, config in configs.items():
        kind = next(architecture for architecture in MODELS.values() if architecture.config is type(config))
        with torch.device("meta"):
            sizes[name] = sum(parameter.numel() for parameter in kind.model(config).parameters())
    least, largest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[largest] > (1 + SIMILAR) * sizes[least]:
        raise ConfigError(
            f"{largest} would have {sizes[largest]:,} parameters, {least} {sizes[least]:,}: more than a tenth apart, "
            "too unlike to be compared; leave widths, layers and vocabulary as they are"
        )


def standing(name: str, runs: Sequence[Path], most: int | None) -> Standing:
    """What the trained runs of one rung reach on what they held out."""
    scores = [score_folders([run], [], [Greedy()], most=most) for run in runs]
    model = load(runs[0]).model
    return Standing(
        name,
        sum(parameter.numel() for parameter in model.parameters()),
        len(runs),
        mean_of(scores),
        statistics.fmean(_training_speed(run) for run in runs),
        _kept_bytes(model),
    )


def _training_speed(run: Path) -> float:
    """The median of what the run wrote down of its speed: a slow minute does not count."""
    lines = (json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines())
    return statistics.median(line["tokens_per_second"] for line in lines if "tokens_per_second" in line)


def _kept_bytes(model: Any) -> int:
    ids = torch.full((PAIRS, TOKENS), model.config.symbols.end)
    return kept_bytes(lambda: model(ids, ids))
