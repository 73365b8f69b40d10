"""Learning-rate schedules (warmup, then decay), and when a run is over."""

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from regard.training.config import TrainingConfig
    from regard.training.run_folder import Progress

Schedule = Literal["inverse_sqrt", "cosine", "linear", "constant", "wsd"]
EVALUATIONS_PER_EPOCH = 4  # at most, where a run counts epochs
MAX_WARMUP_SHARE = 0.1  # of such a run


def learning_rate(
    step: int, *, schedule: Schedule, peak: float, warmup: int, total: float, decay_share: float = 0.2
) -> float:
    """The learning rate of a step, counted from 1: linear warmup to the peak, then the schedule.

    "wsd" (warmup, stable, decay) stays at the peak and falls linearly to zero over the last `decay_share` of the run.
    """
    if step <= warmup:
        return peak * step / warmup
    if schedule == "inverse_sqrt":  # Vaswani 2017, 5.3, with an explicit peak instead of one implied by the width
        return peak * math.sqrt(max(1, warmup) / step)
    if schedule == "constant":
        return peak
    if schedule == "wsd":
        return peak * min(1.0, max(0.0, total - step) / max(1.0, decay_share * total))
    share = min(1.0, (step - warmup) / max(1.0, total - warmup))
    return peak * (0.5 + 0.5 * math.cos(math.pi * share) if schedule == "cosine" else 1 - share)


def scheduled_rate(step: int, progress: "Progress", config: "TrainingConfig", seconds: float) -> float:
    """The learning rate of a step of a run that has trained for so many seconds."""
    total: float = total_steps(progress, config)
    if config.minutes is not None and seconds > 0:  # steps that fit into the time limit at the present speed
        total = min(total, step * config.minutes * 60 / seconds)
    return learning_rate(
        step,
        schedule=config.schedule,
        peak=config.learning_rate,
        warmup=config.warmup if config.epochs is None else min(config.warmup, int(MAX_WARMUP_SHARE * total)),
        total=total,
        decay_share=config.decay_share,
    )


def total_steps(progress: "Progress", config: "TrainingConfig") -> int:
    """Steps of the whole run, unless the time limit or early stopping ends it sooner."""
    if config.epochs is None or progress.epoch_steps is None:
        return config.steps
    return min(config.steps, math.ceil(config.epochs * progress.epoch_steps))


def evaluation_interval(progress: "Progress", config: "TrainingConfig") -> int:
    """Steps between two evaluations."""
    if progress.epoch_steps is None:
        return config.evaluate_every
    return max(config.evaluate_every, math.ceil(progress.epoch_steps / EVALUATIONS_PER_EPOCH))


def is_over(progress: "Progress", config: "TrainingConfig") -> bool:
    """Whether all steps are done, the time is up, or early stopping applies."""
    return (
        progress.step >= total_steps(progress, config)
        or (config.minutes is not None and progress.seconds >= config.minutes * 60)
        or (config.patience is not None and progress.evaluations_since_best >= config.patience)
    )
