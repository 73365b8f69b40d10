"""The training loop, the same for every task.

`train` is a generator: it yields a report each step, and the caller draws the progress. Resuming is bit-exact: the
order of the batches is a pure function of (seed, epoch, index), the random numbers of a step a function of
(seed, step), and a checkpoint holds the rest.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from regard import processes
from regard.data.batches import DataPosition
from regard.errors import ConfigError, DivergedError, TrainingError
from regard.files import Files
from regard.runtime import Runtime, seed_everything
from regard.training import validation
from regard.training.config import TrainingConfig
from regard.training.determinism import NonDeterministic
from regard.training.flops import training_flops
from regard.training.log import Log, NoLog
from regard.training.optimizer import make_optimizers, optimizer_tensors, restore_optimizers, set_learning_rate
from regard.training.parallel import Parallel, computed
from regard.training.prefetch import on_device
from regard.training.run_folder import Checkpoint, Progress, RunFolder
from regard.training.scaling import scale
from regard.training.schedule import evaluation_interval, is_over, scheduled_rate, total_steps
from regard.training.selection import choose_weights, is_better, selecting_metric, stopped_early
from regard.training.signals import stop_signals
from regard.training.speed import Speed

# Consecutive steps with a loss or gradient that is not finite; then the run fails. In float16 each of them halves the
# loss scale, which begins at 65,536.
MAX_SKIPPED, MAX_SKIPPED_IN_FLOAT16 = (5, "fifth"), (20, "twentieth")
LOG_EVERY = 10


class Task(validation.Task, Protocol):
    """What the loop needs of a task, besides its loss, which is summed over the rows of a batch, and its metrics."""

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
    weights: dict[str, Tensor] | None = None  # at the end, the final ones of a model that is sharded; None: it has them


def train(
    model: nn.Module,
    task: Task,
    config: TrainingConfig,
    folder: RunFolder,
    files: Callable[[Mapping[str, Tensor]], Files],
    runtime: Runtime | None = None,
) -> Iterator[Report]:
    """Train a model, or resume from the newest intact checkpoint; at the end the model has its final weights.

    `files` returns the files of a model folder with these weights. The model is moved to the runtime's device.
    """
    runtime = runtime or Runtime()
    metric = selecting_metric(task, config)
    model.to(runtime.device)
    scaled = scale(model, compile=config.compile, activation_checkpointing=config.activation_checkpointing)
    parallel = Parallel(model, task, runtime, config.parallel)
    optimizers = make_optimizers(model, kind=config.optimizer, weight_decay=config.weight_decay)
    progress, notes = _resume(folder, parallel, optimizers)
    scaler = make_scaler(runtime, progress.loss_scale)
    yield from (Report(progress.step, note=note) for note in [*notes, *scaled])
    progress = replace(progress, epoch_steps=_epoch_steps(task, config))
    sampled = task.training_batches(max_tokens=config.max_tokens, seed=config.seed, start=progress.position)
    speed = parallel.clock = Speed(progress, runtime)
    kernels = NonDeterministic(runtime.device.type)
    most_skipped, ordinal = MAX_SKIPPED_IN_FLOAT16 if scaler.is_enabled() else MAX_SKIPPED
    model.train()
    with (
        closing(Log(folder.path, progress.step) if runtime.is_main else NoLog()) as log,
        closing(on_device(parallel.shares(sampled, config.max_tokens), runtime)) as batches,
        stop_signals() as parallel.signals,
    ):
        while not is_over(progress, config):
            step = progress.step + 1
            positions, several = zip(*islice(batches, config.gradient_accumulation), strict=True)
            seed_everything(config.seed, step)
            rate = scheduled_rate(step, progress, config, progress.seconds)
            with kernels.collected():
                loss, norm = take_parallel_step(parallel, optimizers, several, rate, config.max_grad_norm, scaler)
            is_finite = math.isfinite(loss + norm)
            progress = progress.after_step(positions[-1], _tokens(several), parallel.seconds, is_finite=is_finite)
            speed.update(progress, training_flops(model, [computed(one) for one in several]))
            is_last = is_over(progress, config)
            is_evaluated = is_last or step % evaluation_interval(progress, config) == 0
            if is_evaluated:
                found = evaluate(parallel, task, config)
                progress = progress.after_evaluation(found, is_better(found, progress.best_evaluation, metric))
                log.write(step, {f"validation_{name}": value for name, value in progress.validation.items()})
            if is_last or not is_finite or step % LOG_EVERY == 0:
                log.write(step, _logged(loss, norm, rate, speed) | ({} if is_finite else {"skipped": True}))
            note = kernels.note() if is_finite else f"step {step}: loss {loss}, gradient norm {norm}: skipped"
            if progress.skipped_in_a_row == most_skipped:
                raise _diverged(folder, f"{note}, the {ordinal} in a row")
            stopped = 0 if is_last else parallel.stopped
            if is_evaluated or step % config.checkpoint_every == 0 or stopped:
                _save(parallel, optimizers, config, folder, files, replace(progress, loss_scale=scaler.state_dict()))
            yield _report(loss, progress, config, task.unit, speed, note, stopped)
            if stopped:
                return
    yield from _final_reports(parallel, task, config, folder, progress)


def _final_reports(
    parallel: Parallel, task: Task, config: TrainingConfig, folder: RunFolder, progress: Progress
) -> Iterator[Report]:
    """Give the model its final weights; say why the run ended, and which weights they are."""
    with processes.main_first("last checkpoint"):  # rank 0 has saved it when the others read
        metric = selecting_metric(task, config)
    if why := stopped_early(progress, config, metric):
        yield Report(progress.step, note=why)
    score = partial(_score, parallel, task, config)
    note, metrics = choose_weights(parallel, config, folder, progress, metric, score)
    weights = parallel.gathered(parallel.model.state_dict()) if parallel.is_sharded else None
    yield Report(progress.step, validation=metrics, note=note, weights=weights)


def _save(
    parallel: Parallel,
    optimizers: Sequence[torch.optim.Optimizer],
    config: TrainingConfig,
    folder: RunFolder,
    files: Callable[[Mapping[str, Tensor]], Files],
    progress: Progress,
) -> None:
    """Save a checkpoint; DivergedError instead of one with weights that are not finite."""
    if weight := _find_non_finite(parallel):
        raise _diverged(folder, f"step {progress.step}: the weights of {weight} are not finite")
    keep = max(config.keep_checkpoints, config.average_checkpoints)
    weights = parallel.gathered(parallel.model.state_dict())
    state = parallel.gathered(optimizer_tensors(optimizers, parallel.model))
    if parallel.runtime.is_main:
        folder.save(files(weights), state, progress, keep=keep)


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
    parallel = Parallel(model, task, runtime)
    return take_parallel_step(
        parallel, optimizers, batches, rate, max_grad_norm, scaler or make_scaler(parallel.runtime)
    )


def take_parallel_step(
    parallel: Parallel,
    optimizers: Sequence[torch.optim.Optimizer],
    batches: Sequence[Any],
    rate: float,
    max_grad_norm: float,
    scaler: GradScaler,
) -> tuple[float, float]:
    """The same by all processes of a run, each with its share of the batches."""
    tokens = _tokens(batches)
    losses = [
        parallel.backward(batch, lambda loss: scaler.scale(loss / tokens), is_last=number == len(batches))
        for number, batch in enumerate(batches, 1)
    ]
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    norm_tensor = parallel.clip(max_grad_norm)
    *parts, norm = torch.stack([*losses, norm_tensor]).tolist()  # the one time that the host waits for the device
    total = parallel.agree(sum(parts) / tokens)
    if math.isfinite(total) and math.isfinite(norm):
        set_learning_rate(optimizers, rate)
        for optimizer in optimizers:
            optimizer.step()
    scaler.update()
    parallel.model.zero_grad(set_to_none=True)
    return total, norm


def make_scaler(runtime: Runtime, state: dict[str, float] | None = None) -> GradScaler:
    """Scales the loss in float16, so that small gradients do not become 0 (Micikevicius 2018); else it does nothing."""
    scaler = GradScaler(runtime.device.type, enabled=runtime.dtype is torch.float16)
    if state:
        scaler.load_state_dict(state)
    return scaler


def evaluate(parallel: Parallel, task: Task, config: TrainingConfig) -> dict[str, float]:
    """The validation loss, and the task's own metrics, which may use fewer examples."""
    loss = _validation_loss(parallel, task, config)
    batches = task.validation_batches(max_tokens=config.max_tokens, most=config.evaluate_examples)
    with parallel.whole_model() as model:
        return {"loss": loss, **validation.metrics(model, task, loss, batches, runtime=parallel.runtime)}


def _score(parallel: Parallel, task: Task, config: TrainingConfig, what: Literal["loss", "all"]) -> dict[str, float]:
    return evaluate(parallel, task, config) if what == "all" else {"loss": _validation_loss(parallel, task, config)}


def _validation_loss(parallel: Parallel, task: Task, config: TrainingConfig) -> float:
    return parallel.validation_loss(task.validation_batches(max_tokens=config.max_tokens))


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


def _resume(
    folder: RunFolder, parallel: Parallel, optimizers: list[torch.optim.Optimizer]
) -> tuple[Progress, list[str]]:
    with processes.main_first("checkpoint"):  # rank 0 moves damaged ones aside
        checkpoint, notes = folder.newest()
    if checkpoint is None:
        return Progress(), [*notes, "no intact checkpoint is left; starting from scratch"] if notes else []
    _check_fit(checkpoint, parallel.model)
    parallel.load_weights(checkpoint.weights)
    restore_optimizers(optimizers, parallel.model, checkpoint.optimizer, parallel.sharded_like)
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


def _find_non_finite(parallel: Parallel) -> str | None:
    """The name of a parameter or buffer with a number that is not finite, if there is one in any process."""
    state = parallel.shards(parallel.model.state_dict()).items()
    name = next((name for name, weight in state if not bool(weight.isfinite().all())), None)
    return (name or "another rank") if parallel.any(name is not None) else None


def _diverged(folder: RunFolder, reason: str) -> DivergedError:
    saved = folder.folders()
    where = f"the last good checkpoint is {saved[-1]}" if saved else "there is no checkpoint yet"
    return DivergedError(f"{reason}; {where}; try a lower training.learning_rate in another folder")
