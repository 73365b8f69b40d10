"""Turns at the cores: models compute one at a time, and the one that has had the least time goes first."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Cores:
    """Fair by time: a model whose steps are long gets fewer of them. A model that was idle gets no credit for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_busy = False
        self._used: dict[str, float] = {}  # seconds of each model
        self._waiting: list[str] = []
        self._newest = 0.0  # used by the one that went last

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Compute for this model; others wait."""
        with self._changed:
            self._used[name] = max(self._used.get(name, 0.0), self._newest)
            self._waiting.append(name)
            self._changed.wait_for(lambda: not self._is_busy and self._next() == name)
            self._waiting.remove(name)
            self._is_busy, self._newest = True, self._used[name]
        begun = time.perf_counter()
        try:
            yield
        finally:
            with self._changed:
                self._used[name] += time.perf_counter() - begun
                self._is_busy = False
                self._changed.notify_all()

    def _next(self) -> str:
        return min(self._waiting, key=lambda name: self._used[name])
