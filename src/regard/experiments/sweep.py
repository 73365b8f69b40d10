"""A sweep: one recipe trained with every combination of some settings, and with several seeds.

Each run has a folder of its own, named by its settings (and in it seed-1, seed-2, …): the same command resumes the
sweep where it stopped. At the end: one table of means over the seeds, and one picture of the validation losses.
"""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from regard.checkpoint import SETTINGS
from regard.config import override
from regard.errors import ConfigError
from regard.inspection.curves import Curve, Panel, save_curves
from regard.runtime import Runtime
from regard.tasks.evaluation import evaluate_folders
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.training.log import METRICS

PICTURE = "curves.png"
SEED = "training.seed"


@dataclass(frozen=True)
class Run:
    """One training of a sweep."""

    folder: Path
    assignments: list[str]


@dataclass(frozen=True)
class Point:
    """One combination of settings, with its runs: one, or one a seed."""

    settings: dict[str, str]
    runs: list[Run]

    @property
    def name(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.settings.items())

    @property
    def folders(self) -> list[Path]:
        return [run.folder for run in self.runs]


def plan(
    recipe: Recipe[Any, Any, Any],
    inputs: TrainingInputs,
    assignments: Sequence[str],
    grid: Sequence[str],
    seeds: int | None,
    target: Path,
) -> list[Point]:
    """All runs, in their order. ConfigError for a setting that is wrong in any of them, before one is trained."""
    axes = [_axis(one) for one in grid]
    keys = [key for key, _ in axes]
    given = {assignment.partition("=")[0] for assignment in assignments}
    for key in keys:
        if keys.count(key) > 1 or key in given:
            raise ConfigError(f"{key} is given twice; give all its values to one --grid {key}=…")
    if seeds and (SEED in given or SEED in keys):
        raise ConfigError(f"--seeds {seeds} uses the seeds 1 to {seeds}; leave {SEED} out")
    if (target / SETTINGS).exists():
        raise ConfigError(f"{target} is the folder of one run; give another -o for several")
    settings, points = recipe.settings(inputs), []
    for values in product(*(values for _, values in axes)):
        chosen = dict(zip(keys, values, strict=True))
        own = [f"{key}={value}" for key, value in chosen.items()]
        override(settings, [*assignments, *own])
        folder = target / ",".join(own) if own else target
        runs = [Run(folder, [*assignments, *own])]
        if seeds:
            runs = [
                Run(folder / f"seed-{seed}", [*assignments, *own, f"{SEED}={seed}"]) for seed in range(1, seeds + 1)
            ]
        points.append(Point(chosen, runs))
    return points


def _axis(text: str) -> tuple[str, list[str]]:
    """The key and the values of --grid key=value,value."""
    key, _, listed = text.partition("=")
    values = [value.strip() for value in listed.split(",")]
    if not key.strip() or not all(values):
        raise ConfigError(f"--grid {text}: wanted key=value,value, for example training.learning_rate=1e-3,3e-3")
    if len(set(values)) < len(values):
        raise ConfigError(f"--grid {text}: a value is there twice; each has a folder of its own")
    if bad := next((value for value in values if not re.fullmatch(r"[\w.+-]+", value)), None):
        raise ConfigError(f"--grid {text}: {bad!r} cannot be part of a folder's name; wanted letters, digits and . + -")
    return key.strip(), values


def score(points: Sequence[Point], runtime: Runtime) -> list[dict[str, Any]]:
    """The metrics of each point on its validation data: means over its seeds, and their standard deviations."""
    return [
        {
            "settings": point.settings,
            "runs": [str(folder) for folder in point.folders],
            "scores": evaluate_folders(point.folders, [], [None], runtime=runtime),
        }
        for point in points
    ]


def table(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A line a point: its settings, and each metric that is a fraction, mean ± standard deviation."""
    scores = [row["scores"] for row in rows]
    names = [name for name, value in scores[0].items() if isinstance(value, float) and name != "tokens_per_second"]
    lines = [[*rows[0]["settings"], *names]]
    for row, one in zip(rows, scores, strict=True):
        deviation = one.get("deviation", {})
        cells = [_cell(one.get(name), deviation.get(name)) for name in names]
        lines.append([*row["settings"].values(), *cells])
    return lines


def _cell(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.4f}" if deviation is None else f"{mean:.4f} ± {deviation:.4f}"


def draw(points: Sequence[Point], path: Path) -> None:
    """The validation loss over the steps, a curve a point: the mean over its seeds, with their standard deviation."""
    curves = {point.name or "all seeds": _curve(point.folders) for point in points}
    save_curves([Panel("validation loss", "step", "loss", curves)], path)


def _curve(folders: Sequence[Path]) -> Curve:
    losses = [_losses(folder) for folder in folders]
    steps = [step for step in losses[0] if all(step in one for one in losses)]
    several = [[one[step] for one in losses] for step in steps]
    deviation = [statistics.stdev(values) for values in several] if len(losses) > 1 else []
    return Curve(steps, [statistics.fmean(values) for values in several], deviation)


def _losses(folder: Path) -> dict[int, float]:
    """The validation loss of a run after each step that it was evaluated at."""
    lines = map(json.loads, (folder / METRICS).read_text(encoding="utf-8").splitlines())
    return {line["step"]: float(line["validation_loss"]) for line in lines if "validation_loss" in line}
