"""How fast a run is: tokens per second, share of the hardware's matrix product speed, time left."""

import time

from regard.runtime import Runtime, matrix_limit
from regard.training.config import TrainingConfig
from regard.training.run_folder import Progress
from regard.training.schedule import total_steps


class Speed:
    """The clock of a run, counting earlier sessions; its speeds are running means over the steps."""

    def __init__(self, progress: Progress, runtime: Runtime) -> None:
        self._resumed = progress
        self._started = self._last = time.perf_counter()
        self._tokens = progress.tokens
        self._flops = 0.0
        self._matrix_limit = matrix_limit(runtime)
        self.tokens_per_second = 0.0

    @property
    def seconds(self) -> float:
        """Training time so far, over all sessions."""
        return self._resumed.seconds + time.perf_counter() - self._started

    @property
    def utilization(self) -> float | None:
        """FLOP/s as a share of what a large matrix product reaches on this machine; None if not known."""
        return self._flops / self._matrix_limit if self._flops else None

    def update(self, progress: Progress, flops: float | None) -> None:
        """Count the step that just ended; `flops` is its arithmetic, None if not known."""
        now = time.perf_counter()
        seconds = now - self._last
        self.tokens_per_second = _running_mean(self.tokens_per_second, (progress.tokens - self._tokens) / seconds)
        self._last, self._tokens = now, progress.tokens
        if flops is not None:
            self._flops = _running_mean(self._flops, flops / seconds)
            # The limit was measured in a moment; a machine that was busy then reaches more later.
            self._matrix_limit = max(self._matrix_limit, self._flops)

    def seconds_left(self, progress: Progress, config: TrainingConfig) -> float:
        per_step = (self.seconds - self._resumed.seconds) / (progress.step - self._resumed.step)
        left = per_step * (total_steps(progress, config) - progress.step)
        return left if config.minutes is None else max(0.0, min(left, config.minutes * 60 - self.seconds))


def _running_mean(mean: float, new: float) -> float:
    return 0.95 * mean + 0.05 * new if mean else new
