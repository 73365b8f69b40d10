"""The one loop. It knows a task's batches and loss, and nothing of what is learned.

`train` is a generator: it yields a report a step, and whoever iterates draws the progress. Resume is bit-exact: the
order of the batches is a pure function of (seed, epoch, index), every step's chance of (seed, step), and a checkpoint
holds the rest.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from pydantic import Field
from torch import nn

from regard.checkpoint import average
from regard.config import Config
from regard.data.batches import DataPosition
from regard.errors import ConfigError, TrainingError
from regard.files import Files
from regard.runtime import matrix_limit, seed_everything
from regard.training import validation as evaluation
from regard.training.flops import training_flops
from regard.training.log import Log
from regard.training.optimizer import (
    Kind,
    Schedule,
    learning_rate,
    make_optimizers,
    optimizer_tensors,
    restore_optimizers,
    set_rate,
)
from regard.training.run_folder import Checkpoint, Progress, RunFolder, step_of
from regard.training.scaling import scale


class TrainingConfig(Config):
    """How a run goes."""

    steps: int = Field(1000, ge=1, description="optimizer steps in all")
    epochs: float | None = Field(
        None,
        gt=0,
        description="passes over the data; then a tenth at most is warmup, and four evaluations a pass at most",
    )
    minutes: float | None = Field(None, gt=0, description="end by then, the schedule following the clock")
    max_tokens: int = Field(4096, ge=16, description="positions in a batch: rows x length, padding counted")
    gradient_accumulation: int = Field(1, ge=1, description="batches whose gradients make one step")
    optimizer: Kind = "adamw"
    learning_rate: float = Field(1e-3, gt=0, description="the peak")
    warmup: int = Field(100, ge=0, description="steps up to the peak")
    schedule: Schedule = "inverse_sqrt"
    decay: float = Field(0.2, gt=0, le=1, description="share of the run in which a wsd schedule falls to zero")
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, gt=0, description="largest norm a gradient keeps")
    evaluate_every: int = Field(500, ge=1, description="steps between held-out evaluations")
    evaluate_on: int = Field(200, ge=1, description="held-out examples decoded at each of them, where a task decodes")
    checkpoint_every: int = Field(500, ge=1, description="steps between checkpoints")
    keep: int = Field(2, ge=2, description="newest checkpoints that stay, beside the best")
    average: int = Field(1, ge=1, description="newest checkpoints whose mean is tried as the final model")
    patience: int | None = Field(None, ge=1, description="stop after so many evaluations without a better loss")
    compile: bool = Field(False, description="compile the blocks first: a minute of waiting, then a faster step")
    activation_checkpointing: bool = Field(
        False, description="keep no activations inside blocks: less memory, a third more time"
    )
    seed: int = Field(1, ge=0)


class Task(evaluation.Task, Protocol):
    """What the loop asks of a task, beside its evaluation."""

    unit: str  # what a batch has `tokens` of, for the reader of the progress

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int | None:
        """How many make one pass over the data; None: its batches are drawn without end."""

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]: ...

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Report:
    """One step, for whoever watches."""

    step: int
    loss: float | None = None  # a token, smoothed as the task trains; None: no step was taken
    steps: int = 0  # in all
    unit: str = "tokens"
    tokens_per_second: float = 0.0
    utilization: float | None = None  # of the arithmetic a large matrix product reaches here; None: not known
    seconds_left: float = 0.0
    validation: dict[str, float] = field(default_factory=dict)  # the newest evaluation
    note: str = ""  # something the user should read
    stopped: int = 0  # the signal that ended the run before its time


EVALUATIONS = 4  # in a pass over the data, at most, where passes are counted
WARMUP = 0.1  # of such a run, at most
BAD_STEPS = 5  # not finite, one after the other: the run has left the road
LOG_EVERY = 10


def train(
    model: nn.Module, task: Task, config: TrainingConfig, folder: RunFolder, files: Callable[[], Files]
) -> Iterator[Report]:
    """Train, or go on from the newest good checkpoint; at the end the model has its final weights.

    `files` gives the model as the files of a model folder, for the checkpoints.
    """
    optimizers = make_optimizers(model, kind=config.optimizer, weight_decay=config.weight_decay)
    progress, notes = _resume(folder, model, optimizers)
    notes += scale(model, compile=config.compile, activation_checkpointing=config.activation_checkpointing)
    yield from (Report(progress.step, note=note) for note in notes)
    progress = replace(progress, epoch_steps=_epoch_steps(task, config))
    between = evaluation_steps(progress, config)
    batches = task.training_batches(max_tokens=config.max_tokens, seed=config.seed, start=progress.position)
    clock = _Clock(progress)
    limit = matrix_limit()
    validation = progress.validation
    model.train()
    with closing(Log(folder.path, progress.step)) as log, _stop_signals() as signals:
        while not is_over(progress, config):
            step = progress.step + 1
            several = list(islice(batches, config.gradient_accumulation))
            seed_everything(config.seed, step)
            rate = _rate(step, progress, config, clock.seconds)
            loss, norm = take_step(model, task, optimizers, [batch for _, batch in several], rate, config.clip)
            good = math.isfinite(loss) and math.isfinite(norm)
            progress = replace(
                progress,
                step=step,
                position=several[-1][0],
                seconds=clock.seconds,
                tokens=progress.tokens + sum(batch.tokens for _, batch in several),
                skipped_in_a_row=0 if good else progress.skipped_in_a_row + 1,
            )
            speed = clock.tokens_per_second(progress)
            work = clock.flops_per_second(training_flops(model, [batch for _, batch in several]))
            utilization = work / limit if work else None
            note = "" if good else f"step {step}: loss {loss}, gradient norm {norm}: skipped"
            ending = is_over(progress, config)
            evaluating = step % between == 0 or ending
            if evaluating:
                validation = evaluate(model, task, config)
                progress = progress.evaluated(validation)
                log.write(step, {f"validation_{name}": value for name, value in validation.items()})
            if not good or step % LOG_EVERY == 0 or ending:
                values = {
                    "loss": loss,
                    "gradient_norm": norm,
                    "learning_rate": rate,
                    "tokens_per_second": speed,
                }
                if utilization is not None:
                    values["utilization"] = utilization
                log.write(step, values if good else values | {"skipped": True})
            if progress.skipped_in_a_row == BAD_STEPS:
                raise _left_the_road(folder, note)
            stopped = signals[0] if signals and not ending else 0
            if evaluating or step % config.checkpoint_every == 0 or stopped:
                tensors = optimizer_tensors(optimizers, model)
                folder.save(files(), tensors, progress, keep=max(config.keep, config.average))
            yield Report(
                step,
                loss,
                steps_in_all(progress, config),
                task.unit,
                speed,
                utilization,
                clock.seconds_left(progress, config),
                validation,
                note,
                stopped,
            )
            if stopped:
                return
    note, validation = _finish(model, task, config, folder, progress)
    yield Report(progress.step, validation=validation, note=note)


def evaluate(model: nn.Module, task: Task, config: TrainingConfig) -> dict[str, float]:
    """Held-out loss over what the task shows of it, and the task's own scores, which may look at less."""
    loss = evaluation.validation_loss(model, task, task.validation_batches(max_tokens=config.max_tokens))
    batches = task.validation_batches(max_tokens=config.max_tokens, most=config.evaluate_on)
    return {"loss": loss, **evaluation.metrics(model, task, loss, batches)}


def _resume(folder: RunFolder, model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> tuple[Progress, list[str]]:
    checkpoint, notes = folder.newest()
    if checkpoint is None:
        return Progress(), [*notes, "no good checkpoint is left: starting anew"] if notes else []
    _check_fit(checkpoint, model)
    # Copied in, not assigned: a tensor's place in memory decides how a matrix product is cut, and so its last bits.
    model.load_state_dict(checkpoint.weights)
    restore_optimizers(optimizers, model, checkpoint.optimizer)
    return checkpoint.progress, [*notes, f"going on from {checkpoint.folder}"]


def _check_fit(checkpoint: Checkpoint, model: nn.Module) -> None:
    """TrainingError unless its weights have the names and shapes of the model's."""
    saved, wanted = (
        {name: tuple(weight.shape) for name, weight in weights.items()}
        for weights in (checkpoint.weights, model.state_dict())
    )
    for name in sorted(saved.keys() | wanted.keys()):
        got, asked = saved.get(name, "missing"), wanted.get(name, "missing")
        if got != asked:
            raise TrainingError(
                f"{checkpoint.folder} is of another model: {name} is {got} there and {asked} here, so the data or the "
                "settings have changed; go on with those of before, or begin anew in another -o"
            )


def take_step(
    model: nn.Module,
    task: Task,
    optimizers: list[torch.optim.Optimizer],
    batches: list[Any],
    rate: float,
    clip: float,
) -> tuple[float, float]:
    """One optimizer step over the batches' mean loss a token; (loss, gradient norm). Not finite: no step is taken."""
    tokens = sum(batch.tokens for batch in batches)
    total = 0.0
    for batch in batches:
        loss = task.loss(model, batch) / tokens
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip).item()
    if math.isfinite(total) and math.isfinite(norm):
        set_rate(optimizers, rate)
        for optimizer in optimizers:
            optimizer.step()
    model.zero_grad(set_to_none=True)
    return total, norm


def _epoch_steps(task: Task, config: TrainingConfig) -> float | None:
    if config.epochs is None:
        return None
    batches = task.batches_per_epoch(max_tokens=config.max_tokens, seed=config.seed)
    if batches is None:
        raise ConfigError("training.epochs: this task draws its batches without end; give training.steps instead")
    return batches / config.gradient_accumulation


def steps_in_all(progress: Progress, config: TrainingConfig) -> int:
    """How many there will be, but for the clock and for patience."""
    if config.epochs is None or progress.epoch_steps is None:
        return config.steps
    return min(config.steps, math.ceil(config.epochs * progress.epoch_steps))


def evaluation_steps(progress: Progress, config: TrainingConfig) -> int:
    """Steps between two evaluations."""
    if progress.epoch_steps is None:
        return config.evaluate_every
    return max(config.evaluate_every, math.ceil(progress.epoch_steps / EVALUATIONS))


def _rate(step: int, progress: Progress, config: TrainingConfig, seconds: float) -> float:
    total: float = steps_in_all(progress, config)
    if config.minutes is not None and seconds > 0:
        total = min(total, step * config.minutes * 60 / seconds)
    return learning_rate(
        step,
        schedule=config.schedule,
        peak=config.learning_rate,
        warmup=config.warmup if config.epochs is None else min(config.warmup, int(WARMUP * total)),
        total=total,
        decay=config.decay,
    )


def is_over(progress: Progress, config: TrainingConfig) -> bool:
    return (
        progress.step >= steps_in_all(progress, config)
        or (config.minutes is not None and progress.seconds >= config.minutes * 60)
        or (config.patience is not None and progress.worse_in_a_row >= config.patience)
    )


def _left_the_road(folder: RunFolder, note: str) -> TrainingError:
    good = folder.folders()
    where = f"the last good checkpoint is {good[-1]}" if good else "there was no checkpoint yet"
    return TrainingError(
        f"{note}, the fifth in a row; {where}; try a lower training.learning_rate, into another folder"
    )


def _finish(
    model: nn.Module, task: Task, config: TrainingConfig, folder: RunFolder, progress: Progress
) -> tuple[str, dict[str, float]]:
    """Give the model the best weights of the run: the last, the best evaluated, or the mean of the newest.

    Says which, and what they score.
    """
    note, validation = f"kept the weights of step {progress.step}", progress.validation
    best, best_loss = folder.checkpoints / f"step-{progress.best_step}", progress.best_loss
    if progress.best_step not in (None, progress.step) and best.is_dir():
        model.load_state_dict(folder.read(best).weights)
        note = f"kept the weights of step {progress.best_step}, whose held-out loss was the lowest"
        validation = progress.best_validation
    if config.average > 1:
        before = {name: weight.clone() for name, weight in model.state_dict().items()}
        newest = _regular(folder, config, progress)[-config.average :]
        model.load_state_dict(average(folder.read(one).weights for one in newest))
        loss = evaluation.validation_loss(model, task, task.validation_batches(max_tokens=config.max_tokens))
        if best_loss is None or loss < best_loss:
            said = f"kept the mean of {len(newest)} checkpoints: held-out loss {loss:.4f} instead of {best_loss}"
            return said, evaluate(model, task, config)
        model.load_state_dict(before)
    return note, validation


def _regular(folder: RunFolder, config: TrainingConfig, progress: Progress) -> list[Path]:
    """The checkpoints an uninterrupted run would have: one that a stop signal made is not averaged."""
    steps = {step_of(path): path for path in folder.folders()}
    return [
        path
        for step, path in steps.items()
        if step % config.checkpoint_every == 0
        or step % evaluation_steps(progress, config) == 0
        or step == progress.step
    ]


class _Clock:
    """Time spent in a run over all its sittings, the present speed, and the time left."""

    def __init__(self, progress: Progress) -> None:
        self._before = progress
        self._begun = self._lap = time.perf_counter()
        self._tokens = progress.tokens
        self._took = 0.0  # seconds of the newest step
        self._speed = self._flops = 0.0

    @property
    def seconds(self) -> float:
        return self._before.seconds + time.perf_counter() - self._begun

    def tokens_per_second(self, progress: Progress) -> float:
        """Real target tokens a second, as a running mean; called once a step."""
        now = time.perf_counter()
        self._took = now - self._lap
        speed = (progress.tokens - self._tokens) / self._took
        self._lap, self._tokens = now, progress.tokens
        self._speed = _running_mean(self._speed, speed)
        return self._speed

    def flops_per_second(self, flops: float | None) -> float:
        """The arithmetic of the newest step, given how much it did, as a running mean; 0: not known."""
        if flops is not None:
            self._flops = _running_mean(self._flops, flops / self._took)
        return self._flops

    def seconds_left(self, progress: Progress, config: TrainingConfig) -> float:
        a_step = (self.seconds - self._before.seconds) / (progress.step - self._before.step)
        left = a_step * (steps_in_all(progress, config) - progress.step)
        return left if config.minutes is None else max(0.0, min(left, config.minutes * 60 - self.seconds))


def _running_mean(mean: float, new: float) -> float:
    return 0.95 * mean + 0.05 * new if mean else new


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """A list that gets the first stop signal (Ctrl-C, SIGTERM): the loop saves and leaves. A second ends at once."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():  # Python allows handlers in the main thread only
        yield received
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
