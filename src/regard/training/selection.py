"""Which weights a run keeps: those of its best evaluation, the last, or the mean of the newest checkpoints."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from regard.checkpoint import average
from regard.errors import ConfigError
from regard.training.config import TrainingConfig
from regard.training.parallel import Parallel
from regard.training.run_folder import Progress, RunFolder, step_of
from regard.training.schedule import evaluation_interval, total_steps

Metrics = Mapping[str, float]
Evaluate = Callable[[Literal["loss", "all"]], dict[str, float]]  # of the model as it is: the loss alone, or all metrics


def selecting_metric(task: Any, config: TrainingConfig) -> str | None:
    """The metric that decides which weights are best; None: the validation loss."""
    if config.select != "metric":
        return None
    found: str | None = getattr(task, "main_metric", None)
    if found is None:
        raise ConfigError("training.select=metric: this task has no main metric; wanted loss or last")
    return found


def choose_weights(
    parallel: Parallel,
    config: TrainingConfig,
    folder: RunFolder,
    progress: Progress,
    metric: str | None,
    score: Evaluate,
) -> tuple[str, dict[str, float]]:
    """Give the model the weights that `config.select` names, or the mean of the newest checkpoints if it is better.

    Returns a note that says which, and their metrics.
    """
    note, metrics = f"kept the weights of step {progress.step:,}, the last", progress.validation
    best = folder.checkpoints / f"step-{progress.best_step}"
    if config.select != "last" and progress.best_step not in (None, progress.step) and best.is_dir():
        parallel.load_weights(folder.read(best).weights)
        metrics = progress.best_validation
        note = (
            f"kept the weights of step {progress.best_step:,}, which has {_best(metrics, progress.validation, metric)}"
        )
    if config.average_checkpoints > 1:  # checkpoint averaging
        before = {name: weight.clone() for name, weight in parallel.model.state_dict().items()}
        newest = _regular_checkpoints(folder, config, progress)[-config.average_checkpoints :]
        parallel.load_weights(average(folder.read(one).weights for one in newest))
        found = score("loss" if metric is None else "all")
        if not metrics or is_better(found, metrics, metric):
            was = f"{metrics[_name(metric)]:.4f}" if metrics else "none"
            note = f"kept the mean of {len(newest)} checkpoints: {_shown(found, metric)} instead of {was}"
            return note, score("all")
        parallel.model.load_state_dict(before)
    return note, metrics


def is_better(one: Metrics, other: Metrics, metric: str | None) -> bool:
    """Whether an evaluation is better than another: a higher metric, or among equals a lower validation loss."""
    ranks = []
    for metrics in (one, other):
        rank = [] if metric is None else [metrics.get(metric, -math.inf)]
        ranks.append([*rank, -metrics["loss"]])
    return all(map(math.isfinite, ranks[0])) and ranks[0] > ranks[1]


def stopped_early(progress: Progress, config: TrainingConfig, metric: str | None) -> str | None:
    """A note if the run ended before its last step, with the reason."""
    total = total_steps(progress, config)
    if progress.step >= total:
        return None
    where = f"at step {progress.step:,} of {total:,}"
    if config.patience is not None and progress.evaluations_since_best >= config.patience:
        what = "lower validation loss" if metric is None else f"better {metric}"
        return (
            f"stopped early {where}: {progress.evaluations_since_best} evaluations without a {what} "
            f"(training.patience={config.patience})"
        )
    return f"stopped {where}: {config.minutes:g} minutes are over (training.minutes)"


def _best(best: Metrics, last: Metrics, metric: str | None) -> str:
    if metric is None:
        return "the lowest validation loss"
    return f"the best {metric}: {best[metric]:.4f}, the last has {last[metric]:.4f}"


def _name(metric: str | None) -> str:
    return metric or "loss"


def _shown(metrics: Metrics, metric: str | None) -> str:
    return f"{metric or 'validation loss'} {metrics[_name(metric)]:.4f}"


def _regular_checkpoints(folder: RunFolder, config: TrainingConfig, progress: Progress) -> list[Path]:
    """The checkpoints that an uninterrupted run would have, without those that a stop signal caused."""
    steps = {step_of(path): path for path in folder.folders()}
    return [
        path
        for step, path in steps.items()
        if step % config.checkpoint_every == 0
        or step % evaluation_interval(progress, config) == 0
        or step == progress.step
    ]
