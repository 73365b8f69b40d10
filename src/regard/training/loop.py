"""The training loop, the same for every task.

`train` is a generator: it yields a report each step, and the caller draws the progress. Resuming is bit-exact: the
order of the batches is a pure function of (seed, epoch, index), the random numbers of a step a function of
(seed, step), and a checkpoint holds the rest.
"""

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import nn

from regard.checkpoint import average
from regard.data.batches import DataPosition
from regard.errors import ConfigError, DivergedError, TrainingError
from regard.files import Files
from regard.runtime import seed_everything
from regard.training import validation
from regard.training.config import TrainingConfig
from regard.training.flops import training_flops
from regard.training.log import Log
from regard.training.optimizer import make_optimizers, optimizer_tensors, restore_optimizers, set_learning_rate
from regard.training.run_folder import Checkpoint, Progress, RunFolder, step_of
from regard.training.scaling import scale
from regard.training.schedule import evaluation_interval, is_over, scheduled_rate, total_steps
from regard.training.speed import Speed

MAX_SKIPPED_STEPS = 5  # consecutive steps with a loss or gradient that is not finite; then the run fails
LOG_EVERY = 10


class Task(validation.Task, Protocol):
    """What the loop needs of a task, besides its loss and metrics."""

    unit: str  # what `batch.tokens` counts, for the progress line

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int | None:
        """Batches of one pass over the data; None if batches are sampled without end."""

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]: ...

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Report:
    """One step, for the progress line."""

    step: int
    loss: float | None = None  # mean over the tokens of the step; None: this report is a note, not a step
    steps: int = 0  # of the whole run
    unit: str = "tokens"
    tokens_per_second: float = 0.0
    utilization: float | None = None  # share of the FLOP/s of a large matrix product; None: not known
    seconds_left: float = 0.0
    validation: dict[str, float] = field(default_factory=dict)  # the newest evaluation
    note: str = ""  # a line for the user
    stopped: int = 0  # the signal that interrupted the run


def train(
    model: nn.Module, task: Task, config: TrainingConfig, folder: RunFolder, files: Callable[[], Files]
) -> Iterator[Report]:
    """Train a model, or resume from the newest intact checkpoint; at the end the model has its final weights.

    `files` returns the files of the model folder, for the checkpoints.
    """
    optimizers = make_optimizers(model, kind=config.optimizer, weight_decay=config.weight_decay)
    progress, notes = _resume(folder, model, optimizers)
    notes += scale(model, compile=config.compile, activation_checkpointing=config.activation_checkpointing)
    yield from (Report(progress.step, note=note) for note in notes)
    progress = replace(progress, epoch_steps=_epoch_steps(task, config))
    batches = task.training_batches(max_tokens=config.max_tokens, seed=config.seed, start=progress.position)
    speed = Speed(progress)
    model.train()
    with closing(Log(folder.path, progress.step)) as log, _stop_signals() as signals:
        while not is_over(progress, config):
            step = progress.step + 1
            positions, several = zip(*islice(batches, config.gradient_accumulation), strict=True)
            seed_everything(config.seed, step)
            rate = scheduled_rate(step, progress, config, speed.seconds)
            loss, norm = take_step(model, task, optimizers, several, rate, config.max_grad_norm)
            is_finite = math.isfinite(loss) and math.isfinite(norm)
            progress = progress.after_step(positions[-1], _tokens(several), speed.seconds, is_finite=is_finite)
            speed.update(progress, training_flops(model, several))
            is_last = is_over(progress, config)
            is_evaluated = is_last or step % evaluation_interval(progress, config) == 0
            if is_evaluated:
                progress = progress.after_evaluation(evaluate(model, task, config))
                log.write(step, {f"validation_{name}": value for name, value in progress.validation.items()})
            if is_last or not is_finite or step % LOG_EVERY == 0:
                log.write(step, _logged(loss, norm, rate, speed) | ({} if is_finite else {"skipped": True}))
            note = "" if is_finite else f"step {step}: loss {loss}, gradient norm {norm}: skipped"
            if progress.skipped_in_a_row == MAX_SKIPPED_STEPS:
                raise _diverged(folder, f"{note}, the fifth in a row")
            stopped = signals[0] if signals and not is_last else 0
            if is_evaluated or step % config.checkpoint_every == 0 or stopped:
                if weight := _find_non_finite(model):
                    raise _diverged(folder, f"step {step}: the weights of {weight} are not finite")
                keep = max(config.keep_checkpoints, config.average_checkpoints)
                folder.save(files(), optimizer_tensors(optimizers, model), progress, keep=keep)
            yield Report(
                step,
                loss,
                total_steps(progress, config),
                task.unit,
                speed.tokens_per_second,
                speed.utilization,
                speed.seconds_left(progress, config),
                progress.validation,
                note,
                stopped,
            )
            if stopped:
                return
    note, metrics = _choose_weights(model, task, config, folder, progress)
    yield Report(progress.step, validation=metrics, note=note)


def take_step(
    model: nn.Module,
    task: Task,
    optimizers: Sequence[torch.optim.Optimizer],
    batches: Sequence[Any],
    rate: float,
    max_grad_norm: float,
) -> tuple[float, float]:
    """One optimizer step over the mean loss per token of the batches; returns (loss, gradient norm).

    Gradient accumulation: each batch adds its gradient, divided by the tokens of all. No step is taken when the loss
    or the gradient is not finite.
    """
    tokens = _tokens(batches)
    total = 0.0
    for batch in batches:
        loss = task.loss(model, batch) / tokens
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm).item()
    if math.isfinite(total) and math.isfinite(norm):
        set_learning_rate(optimizers, rate)
        for optimizer in optimizers:
            optimizer.step()
    model.zero_grad(set_to_none=True)
    return total, norm


def evaluate(model: nn.Module, task: Task, config: TrainingConfig) -> dict[str, float]:
    """The validation loss, and the task's own metrics, which may use fewer examples."""
    loss = _validation_loss(model, task, config)
    batches = task.validation_batches(max_tokens=config.max_tokens, most=config.evaluate_examples)
    return {"loss": loss, **validation.metrics(model, task, loss, batches)}


def _validation_loss(model: nn.Module, task: Task, config: TrainingConfig) -> float:
    return validation.validation_loss(model, task, task.validation_batches(max_tokens=config.max_tokens))


def _tokens(batches: Sequence[Any]) -> int:
    return sum(batch.tokens for batch in batches)


def _logged(loss: float, norm: float, rate: float, speed: Speed) -> dict[str, Any]:
    values = {
        "loss": loss,
        "gradient_norm": norm,
        "learning_rate": rate,
        "tokens_per_second": speed.tokens_per_second,
    }
    return values if speed.utilization is None else values | {"utilization": speed.utilization}


def _epoch_steps(task: Task, config: TrainingConfig) -> float | None:
    if config.epochs is None:
        return None
    batches = task.batches_per_epoch(max_tokens=config.max_tokens, seed=config.seed)
    if batches is None:
        raise ConfigError("training.epochs: this task samples its batches without end; use training.steps instead")
    return batches / config.gradient_accumulation


def _resume(folder: RunFolder, model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> tuple[Progress, list[str]]:
    checkpoint, notes = folder.newest()
    if checkpoint is None:
        return Progress(), [*notes, "no intact checkpoint is left; starting from scratch"] if notes else []
    _check_fit(checkpoint, model)
    # Copied, not assigned: the alignment of a tensor decides how a matrix product is split, and so its last bits.
    model.load_state_dict(checkpoint.weights)
    restore_optimizers(optimizers, model, checkpoint.optimizer)
    return checkpoint.progress, [*notes, f"resuming from {checkpoint.folder}"]


def _check_fit(checkpoint: Checkpoint, model: nn.Module) -> None:
    """TrainingError unless its weights have the names and shapes of the model's."""
    saved, wanted = (
        {name: tuple(weight.shape) for name, weight in weights.items()}
        for weights in (checkpoint.weights, model.state_dict())
    )
    for name in sorted(saved.keys() | wanted.keys()):
        there, here = saved.get(name, "missing"), wanted.get(name, "missing")
        if there != here:
            raise TrainingError(
                f"{checkpoint.folder} is of another model: {name} is {there} there and {here} here, so the data or the "
                "settings have changed; resume with the earlier ones, or start a new run with another -o"
            )


def _find_non_finite(model: nn.Module) -> str | None:
    """The name of a parameter or buffer with a number that is not finite, if there is one."""
    state = model.state_dict().items()
    return next((name for name, weight in state if not bool(weight.isfinite().all())), None)


def _diverged(folder: RunFolder, reason: str) -> DivergedError:
    saved = folder.folders()
    where = f"the last good checkpoint is {saved[-1]}" if saved else "there is no checkpoint yet"
    return DivergedError(f"{reason}; {where}; try a lower training.learning_rate in another folder")


def _choose_weights(
    model: nn.Module, task: Task, config: TrainingConfig, folder: RunFolder, progress: Progress
) -> tuple[str, dict[str, float]]:
    """Give the model the best weights of the run: the last, the best evaluated, or the mean of the newest.

    Returns a note that says which, and their metrics.
    """
    note, metrics = f"kept the weights of step {progress.step}", progress.validation
    best, best_loss = folder.checkpoints / f"step-{progress.best_step}", progress.best_loss
    if progress.best_step not in (None, progress.step) and best.is_dir():
        model.load_state_dict(folder.read(best).weights)
        note = f"kept the weights of step {progress.best_step}, which has the lowest validation loss"
        metrics = progress.best_validation
    if config.average_checkpoints > 1:  # checkpoint averaging
        before = {name: weight.clone() for name, weight in model.state_dict().items()}
        newest = _regular_checkpoints(folder, config, progress)[-config.average_checkpoints :]
        model.load_state_dict(average(folder.read(one).weights for one in newest))
        loss = _validation_loss(model, task, config)
        if best_loss is None or loss < best_loss:
            note = f"kept the mean of {len(newest)} checkpoints: validation loss {loss:.4f} instead of {best_loss}"
            return note, evaluate(model, task, config)
        model.load_state_dict(before)
    return note, metrics


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


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect the first stop signal (Ctrl-C, SIGTERM), so that the loop saves and returns; a second ends at once."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():  # Python allows handlers in the main thread only
        yield received
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
