"""Evaluate model folders: each by its own task, several of them by mean and standard deviation."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import ConfigError, DataError
from regard.generation import Beam, Greedy, Strategy
from regard.generation.strategies import length_penalty_of
from regard.runtime import Runtime
from regard.tasks.base import EvaluationRequest
from regard.tasks.loading import load_with_task
from regard.tasks.run_settings import validation_of


def evaluate_folders(
    folders: Sequence[Path],
    paths: Sequence[Path] = (),
    strategies: Sequence[Strategy | None] = (None,),
    *,
    num_beams: int | None = None,
    limit: int | None = None,
    gold: Path | None = None,
    alignments: Path | None = None,
    precision: str = "float32",
    assignments: Sequence[str] = (),
    runtime: Runtime | None = None,
) -> dict[str, Any]:
    """The metrics of models on the data of these files, or each on the validation data of its own run.

    With several folders or strategies (runs or samples with different seeds) the numbers are means, and `deviation` has
    their standard deviations. `num_beams` takes the place of a strategy. The rest is as in EvaluationRequest.
    """
    if assignments and not paths:
        raise ConfigError(f"{assignments[0]} says how files are read, and none is named; name the data to score")
    if len(folders) > 1 and not paths and len({_validation_data(folder) for folder in folders}) > 1:
        raise DataError(
            f"{', '.join(map(str, folders))} have different validation data; name the test data for all of them"
        )
    metrics = []
    for folder in folders:
        task, pipeline = load_with_task(folder, precision=precision, runtime=runtime)
        request = EvaluationRequest(
            folder, paths, limit=limit, assignments=assignments, gold=gold, alignments=alignments
        )
        if num_beams is not None:
            strategies = [_beam_search(num_beams, getattr(pipeline, "strategy", Greedy()))]
        metrics += [task.evaluate(pipeline, replace(request, strategy=strategy)) for strategy in strategies]
    return mean_of(metrics) | _details_of_best(metrics)


def _beam_search(num_beams: int, own: Strategy) -> Strategy:
    return Greedy(scored=False) if num_beams == 1 else Beam(num_beams, length_penalty_of(own))


def _validation_data(folder: Path) -> str:
    """What a run was trained on and how it was split, as one text."""
    run = validation_of(folder, f"the test data: regard evaluate {folder} DATA")
    return repr((run.data, run.settings["data"]))


def mean_of(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each number over several evaluations on the same data, and `deviation`, their standard deviations."""
    if len(several) == 1:
        return several[0]
    shared = [name for name in several[0] if all(name in one for one in several)]  # a tag may be found by one alone
    numbers = [name for name in shared if isinstance(several[0][name], float)]
    means = {name: statistics.fmean(one[name] for one in several) for name in numbers}
    deviation = {name: statistics.stdev(one[name] for one in several) for name in numbers}
    alike = {name: value for name, value in several[0].items() if all(one.get(name) == value for one in several)}
    kept = alike | means
    mean = {"runs": len(several), **{name: kept[name] for name in several[0] if name in kept}, "deviation": deviation}
    for name in (name for name in several[0] if name.startswith("by_")):  # tables: row by row
        mean[name] = [mean_of(rows) for rows in zip(*(one[name] for one in several), strict=True)]
    return mean


def _details_of_best(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the run that scores best, what has no mean: the confusion matrix, the worst errors and the like."""
    if len(several) == 1:
        return {}
    numbers = [name for name, value in several[0].items() if isinstance(value, float)]
    best = max(several, key=lambda one: one[numbers[0]]) if numbers else several[0]
    tables = {name: value for name, value in best.items() if isinstance(value, list) and not name.startswith("by_")}
    return {name: rows for name, rows in tables.items() if not rows or not isinstance(rows[0], str)}
