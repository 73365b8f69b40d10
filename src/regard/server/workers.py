"""The lanes of all models, and the way from the event loop to them and back."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from regard.server.batching import Answer, BatchLane, Input
from regard.server.cores import Cores
from regard.server.errors import APIError, unknown_model
from regard.server.lanes import Lane
from regard.server.metrics import Metrics
from regard.server.models import ModelTable, ServedModel
from regard.server.scheduler import TextLane
from regard.server.settings import ServerSettings
from regard.server.texts import Piece, Text

T = TypeVar("T")


class Workers:
    """One lane for each model; used from the event loop."""

    def __init__(self, models: ModelTable, settings: ServerSettings, metrics: Metrics) -> None:
        self.models, self.settings, self.metrics = models, settings, metrics
        self._cores = Cores()
        self._lanes: dict[str, Lane] = {}

    def start(self) -> None:
        """Begin to work; all models are open."""
        for served in self.models:
            lane: Lane
            if served.pipeline.model.interface == "causal_lm":
                lane = TextLane(served, self._cores, self.settings, self.metrics)
            else:
                lane = BatchLane(served, self._cores, self.settings, self.metrics)
            self._lanes[served.name] = lane
            lane.start()

    def stop(self) -> None:
        for lane in self._lanes.values():
            lane.stop()

    def served(self, name: str) -> ServedModel:
        """The model of this name; APIError 404 where there is none, 503 while it is loaded."""
        found = self.models.get(name)
        if found is not None and name in self._lanes:
            return found
        if name in self.models.names:
            raise APIError(503, f"the model {name} is being loaded", code="loading", retry_after=5)
        raise unknown_model(name, self.models.names)

    def text_lane(self, name: str) -> TextLane:
        self.served(name)
        lane = self._lanes[name]
        assert isinstance(lane, TextLane)
        return lane

    def refusal(self) -> APIError | None:
        """Why no language model takes another request now; None: one does, or there is none."""
        lanes = [lane for lane in self._lanes.values() if isinstance(lane, TextLane)]
        found = [lane.full() for lane in lanes]
        return found[0] if found and all(found) else None

    async def run(self, name: str, work: Callable[[ServedModel], T]) -> T:
        """Run something with a model, off the event loop and alone."""
        self.served(name)
        lane = self._lanes[name]
        if lane.num_jobs >= self.settings.max_queue:
            raise APIError(429, f"the queue of {name} is full; try again later", code="queue_full", retry_after=2)
        found: T = await self._within(asyncio.wrap_future(lane.run(work)))
        return found

    async def answer(self, name: str, key: Any, answer: Answer, values: Sequence[Any], costs: Sequence[int]) -> list:
        """Answer inputs, batched with those of other requests that have the same key."""
        self.served(name)
        lane = self._lanes[name]
        assert isinstance(lane, BatchLane)
        deadline = time.monotonic() + self.settings.request_seconds
        inputs = [Input(key, answer, value, cost, deadline) for value, cost in zip(values, costs, strict=True)]
        lane.submit(inputs)
        return list(await self._within(asyncio.gather(*(asyncio.wrap_future(one.found) for one in inputs))))

    async def _within(self, found: Any) -> Any:
        try:
            return await asyncio.wait_for(found, self.settings.request_seconds)
        except TimeoutError as error:
            raise APIError(504, "the request took longer than this server allows", code="deadline_exceeded") from error


class Pieces:
    """The pieces of a request's texts as they come, from the lane's thread to the event loop."""

    def __init__(self, lane: TextLane) -> None:
        self._lane = lane
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Piece] = asyncio.Queue()
        self._texts: list[Text] = []

    def send(self, piece: Piece) -> None:
        """From the lane's thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)

    def submit(self, texts: list[Text]) -> None:
        self._lane.submit(texts)
        self._texts = texts

    async def next(self) -> Piece:
        return await self._queue.get()

    def close(self) -> None:
        """Nobody waits for what is unfinished."""
        if self._texts:
            self._lane.cancel(self._texts)
