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
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any, Literal, Protocol

import torch
from torch import nn
from torch.amp import GradScaler

from regard.data.batches import DataPosition
from regard.errors import ConfigError, DivergedError, TrainingError
from regard.files import Files
from regard.runtime import Runtime, seed_everything
from regard.training import validation
from regard.training.config import TrainingConfig
from regard.training.determinism import NonDeterministic
from regard.training.flops import training_flops
from regard.training.log import Log
from regard.training.optimizer import make_optimizers, optimizer_tensors, restore_optimizers, set_learning_rate
from regard.training.prefetch import on_device
from regard.training.run_folder import Checkpoint, Progress, RunFolder
from regard.training.scaling import scale
from regard.training.schedule import evaluation_interval, is_over, scheduled_rate, total_steps
from regard.training.selection import choose_weights, is_better, selecting_metric, stopped_early
from regard.training.speed import Speed

# Consecutive steps with a loss or gradient that is not finite; then the run fails. In float16 each of them halves the
# loss scale, which begins at 65,536.
MAX_SKIPPED, MAX_SKIPPED_IN_FLOAT16 = (5, "fifth"), (20, "twentieth")
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
    model: nn.Module,
    task: Task,
    config: TrainingConfig,
    folder: RunFolder,
    files: Callable[[], Files],
    runtime: Runtime | None = None,
) -> Iterator[Report]:
    """Train a model, or resume from the newest intact checkpoint; at the end the model has its final weights.

    `files` returns the files of the model folder, for the checkpoints. The model is moved to the runtime's device.
    """
    runtime = runtime or Runtime()
    metric = selecting_metric(task, config)
    model.to(runtime.device)
    optimizers = make_optimizers(model, kind=config.optimizer, weight_decay=config.weight_decay)
    progress, notes = _resume(folder, model, optimizers)
    scaler = make_scaler(runtime, progress.loss_scale)
    notes += scale(model, compile=config.compile, activation_checkpointing=config.activation_checkpointing)
    yield from (Report(progress.step, note=note) for note in notes)
    progress = replace(progress, epoch_steps=_epoch_steps(task, config))
    sampled = task.training_batches(max_tokens=config.max_tokens, seed=config.seed, start=progress.position)
    speed = Speed(progress, runtime)
    kernels = NonDeterministic(runtime.device.type)
    most_skipped, ordinal = MAX_SKIPPED_IN_FLOAT16 if scaler.is_enabled() else MAX_SKIPPED
    model.train()
    with (
        closing(Log(folder.path, progress.step)) as log,
        closing(on_device(sampled, runtime)) as batches,
        _stop_signals() as signals,
    ):
        while not is_over(progress, config):
            step = progress.step + 1
            positions, several = zip(*islice(batches, config.gradient_accumulation), strict=True)
            seed_everything(config.seed, step)
            rate = scheduled_rate(step, progress, config, speed.seconds)
            with kernels.collected():
                loss, norm = take_step(model, task, optimizers, several, rate, config.max_grad_norm, runtime, scaler)
            is_finite = math.isfinite(loss) and math.isfinite(norm)
            progress = progress.after_step(positions[-1], _tokens(several), speed.seconds, is_finite=is_finite)
            speed.update(progress, training_flops(model, several))
            is_last = is_over(progress, config)
            is_evaluated = is_last or step % evaluation_interval(progress, config) == 0
            if is_evaluated:
                found = evaluate(model, task, config, runtime)
                progress = progress.after_evaluation(found, is_better(found, progress.best_evaluation, metric))
                log.write(step, {f"validation_{name}": value for name, value in progress.validation.items()})
            if is_last or not is_finite or step % LOG_EVERY == 0:
                log.write(step, _logged(loss, norm, rate, speed) | ({} if is_finite else {"skipped": True}))
            note = kernels.note() if is_finite else f"step {step}: loss {loss}, gradient norm {norm}: skipped"
            if progress.skipped_in_a_row == most_skipped:
                raise _diverged(folder, f"{note}, the {ordinal} in a row")
            stopped = signals[0] if signals and not is_last else 0
            if is_evaluated or step % config.checkpoint_every == 0 or stopped:
                _save(model, optimizers, config, folder, files(), replace(progress, loss_scale=scaler.state_dict()))
            yield _report(loss, progress, config, task.unit, speed, note, stopped)
            if stopped:
                return
    yield from _final_reports(model, task, config, folder, progress, runtime)


def _final_reports(
    model: nn.Module, task: Task, config: TrainingConfig, folder: RunFolder, progress: Progress, runtime: Runtime
) -> Iterator[Report]:
    """Give the model its final weights; say why the run ended, and which weights they are."""
    metric = selecting_metric(task, config)
    if why := stopped_early(progress, config, metric):
        yield Report(progress.step, note=why)
    score = partial(_score, model, task, config, runtime)
    note, metrics = choose_weights(model, config, folder, progress, metric, score)
    yield Report(progress.step, validation=metrics, note=note)


def _save(
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    config: TrainingConfig,
    folder: RunFolder,
    files: Files,
    progress: Progress,
) -> None:
    """Save a checkpoint; DivergedError instead of one with weights that are not finite."""
    if weight := _find_non_finite(model):
        raise _diverged(folder, f"step {progress.step}: the weights of {weight} are not finite")
    keep = max(config.keep_checkpoints, config.average_checkpoints)
    folder.save(files, optimizer_tensors(optimizers, model), progress, keep=keep)


def _report(
    loss: float, progress: Progress, config: TrainingConfig, unit: str, speed: Speed, note: str, stopped: int
) -> Report:
    return Report(
        progress.step,
        loss,
        total_steps(progress, config),
        unit,
        speed.tokens_per_second,
        speed.utilization,
        speed.seconds_left(progress, config),
        progress.validation,
        note,
        stopped,
    )


def take_step(
    model: nn.Module,
    task: Task,
    optimizers: Sequence[torch.optim.Optimizer],
    batches: Sequence[Any],
    rate: float,
    max_grad_norm: float,
    runtime: Runtime | None = None,
    scaler: GradScaler | None = None,
) -> tuple[float, float]:
    """One optimizer step over the mean loss per token of the batches; returns (loss, gradient norm).

    Gradient accumulation: each batch adds its gradient, divided by the tokens of all. No step is taken when the loss
    or the gradient is not finite. The batches are on the runtime's device; `scaler` keeps float16 gradients in range.
    """
    runtime = runtime or Runtime()
    scaler = scaler or make_scaler(runtime)
    tokens = _tokens(batches)
    losses = []
    for batch in batches:
        with runtime.autocast():
            loss = task.loss(model, batch)
        loss = loss.float() / tokens
        scaler.scale(loss).backward()
        losses.append(loss.detach())
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    norm_tensor = nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    *parts, norm = torch.stack([*losses, norm_tensor]).tolist()  # the one time that the host waits for the device
    total = sum(parts)
    if math.isfinite(total) and math.isfinite(norm):
        set_learning_rate(optimizers, rate)
        for optimizer in optimizers:
            optimizer.step()
    scaler.update()
    model.zero_grad(set_to_none=True)
    return total, norm


def make_scaler(runtime: Runtime, state: dict[str, float] | None = None) -> GradScaler:
    """Scales the loss in float16, so that small gradients do not become 0 (Micikevicius 2018); else it does nothing."""
    scaler = GradScaler(runtime.device.type, enabled=runtime.dtype is torch.float16)
    if state:
        scaler.load_state_dict(state)
    return scaler


def evaluate(model: nn.Module, task: Task, config: TrainingConfig, runtime: Runtime) -> dict[str, float]:
    """The validation loss, and the task's own metrics, which may use fewer examples."""
    loss = _validation_loss(model, task, config, runtime)
    batches = task.validation_batches(max_tokens=config.max_tokens, most=config.evaluate_examples)
    return {"loss": loss, **validation.metrics(model, task, loss, batches, runtime=runtime)}


def _score(
    model: nn.Module, task: Task, config: TrainingConfig, runtime: Runtime, what: Literal["loss", "all"]
) -> dict[str, float]:
    if what == "all":
        return evaluate(model, task, config, runtime)
    return {"loss": _validation_loss(model, task, config, runtime)}


def _validation_loss(model: nn.Module, task: Task, config: TrainingConfig, runtime: Runtime) -> float:
    batches = task.validation_batches(max_tokens=config.max_tokens)
    return validation.validation_loss(model, task, batches, runtime)


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
