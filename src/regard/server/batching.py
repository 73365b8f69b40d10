"""Dynamic batching of models that answer an input in one go: translators, encoders, captioners and ViLBERTs.

What waits with the same options when the model is free is one batch. A translator's beam search gives the cores to
other models between its steps.
"""

import copy
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from regard.errors import RegardError
from regard.server.cores import Cores
from regard.server.errors import APIError
from regard.server.lanes import Lane, stopping
from regard.server.metrics import Metrics
from regard.server.models import ServedModel
from regard.server.settings import ServerSettings

MAX_BATCH = 32  # inputs
MAX_COST = 20_000  # characters of a batch

# (pipeline, inputs) -> a result for each
Answer = Callable[[Any, Sequence[Any]], Sequence[Any]]


@dataclass(eq=False)
class Input:
    """One input that waits for its batch."""

    key: Hashable  # inputs with the same key are answered together
    answer: Answer
    value: Any
    cost: int
    deadline: float
    found: "Future[Any]" = field(default_factory=Future)


class BatchLane(Lane):
    """The inputs of one model."""

    def __init__(self, served: ServedModel, cores: Cores, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(served, cores)
        self.settings, self._metrics = settings, metrics
        self._queue: deque[Input] = deque()
        self._pipeline: Any = None
        self._turns: Any = None

    def submit(self, inputs: Sequence[Input]) -> None:
        """Answer these; APIError 429 where the queue is full."""
        with self._changed:
            if self._is_stopping:
                raise stopping()
            if self._queue and len(self._queue) + len(inputs) > self.settings.max_queue:
                self._metrics.refused.labels(self.served.name).inc()
                message = f"the queue of {self.served.name} is full ({len(self._queue)} inputs wait); try again later"
                raise APIError(429, message, code="queue_full", retry_after=1)
            self._queue.extend(inputs)
            self._changed.notify()

    @property
    def num_waiting(self) -> int:
        return len(self._queue)

    def _has_work(self) -> bool:
        return bool(self._queue)

    def _turn(self) -> None:
        batch = self._take()
        self._metrics.waiting.labels(self.served.name).set(len(self._queue))
        now = time.monotonic()
        for one in batch:
            if one.deadline < now:
                one.found.set_exception(APIError(504, "the request waited too long", code="deadline_exceeded"))
        batch = [one for one in batch if one.deadline >= now and one.found.set_running_or_notify_cancel()]
        if batch:
            self._metrics.batch.labels(self.served.name).observe(len(batch))
            self._answer(batch)

    def _take(self) -> list[Input]:
        """The oldest input, and others that can be answered with it."""
        with self._changed:
            first, cost = self._queue[0], 0
            batch: list[Input] = []
            rest: deque[Input] = deque()
            while self._queue:
                one = self._queue.popleft()
                if one.key == first.key and len(batch) < MAX_BATCH and (not batch or cost + one.cost <= MAX_COST):
                    batch.append(one)
                    cost += one.cost
                else:
                    rest.append(one)
            self._queue = rest
        return batch

    def _answer(self, batch: list[Input]) -> None:
        try:
            with Yielding(self._cores, self.served) as pipeline:
                results = batch[0].answer(pipeline, [one.value for one in batch])
            assert len(results) == len(batch)
        except RegardError as error:
            if len(batch) == 1:
                batch[0].found.set_exception(error)
            else:  # one of them cannot be answered; the others can
                for one in batch:
                    self._answer([one])
        except Exception as error:
            for one in batch:
                one.found.set_exception(error)
        else:
            for one, result in zip(batch, results, strict=True):
                one.found.set_result(result)

    def _refuse_all(self, error: APIError) -> None:
        with self._changed:
            waiting = list(self._queue)
            self._queue.clear()
        for one in waiting:
            if one.found.set_running_or_notify_cancel():
                one.found.set_exception(error)


class Yielding:
    """A turn at the cores with a pipeline whose model, where it generates, gives them to others after each step."""

    def __init__(self, cores: Cores, served: ServedModel) -> None:
        self._cores, self._served = cores, served
        self._turn: Any = None

    def __enter__(self) -> Any:
        self._begin()
        pipeline = self._served.pipeline
        if pipeline.model.interface not in ("seq2seq", "captioner"):
            return pipeline
        pipeline = copy.copy(pipeline)
        pipeline.model = _Stepping(pipeline.model, self._yield)
        return pipeline

    def __exit__(self, *error: object) -> None:
        self._turn.__exit__(None, None, None)

    def _begin(self) -> None:
        self._turn = self._cores.turn(self._served.name)
        self._turn.__enter__()

    def _yield(self) -> None:
        self._turn.__exit__(None, None, None)
        self._begin()


class _Stepping:
    """A model that calls `after` after each of its steps."""

    def __init__(self, model: Any, after: Callable[[], None]) -> None:
        self._model, self._after = model, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, *inputs: Any) -> Any:
        return self._model(*inputs)

    def step(self, tokens: Any, state: Any) -> Any:
        found = self._model.step(tokens, state)
        self._after()
        return found
