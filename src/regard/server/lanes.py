"""A lane: the thread of one model, where all its work is done. What is alike for all models stands here."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import torch

from regard.server.cores import Cores
from regard.server.errors import APIError
from regard.server.models import ServedModel

logger = logging.getLogger(__name__)


class Lane:
    """Runs `_turn` while there is work, each time it is this model's turn at the cores."""

    def __init__(self, served: ServedModel, cores: Cores) -> None:
        self.served, self._cores = served, cores
        self._changed = threading.Condition()
        self._jobs: deque[tuple[Callable[[ServedModel], Any], Future[Any]]] = deque()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._work, name=f"model-{served.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the turn that it is at; what still waits is refused."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def run(self, work: Callable[[ServedModel], Any]) -> "Future[Any]":
        """Do something with the model, alone: between the turns of its other work."""
        found: Future[Any] = Future()
        with self._changed:
            if self._is_stopping:
                raise stopping()
            self._jobs.append((work, found))
            self._changed.notify()
        return found

    @property
    def num_jobs(self) -> int:
        return len(self._jobs)

    # ------------------------------------------------ what the kinds of lanes do

    def _has_work(self) -> bool:
        """Whether `_turn` has something to do; called with the lock."""
        raise NotImplementedError

    def _turn(self) -> None:
        """Some work, as much as others may wait for."""
        raise NotImplementedError

    def _refuse_all(self, error: APIError) -> None:
        """Everything that waits or runs ends with this error."""
        raise NotImplementedError

    # ------------------------------------------------ the thread

    def _work(self) -> None:
        torch.set_flush_denormal(True)  # of a thread
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopping or self._jobs or self._has_work())
                job = self._jobs.popleft() if self._jobs else None
                if self._is_stopping and job is None:
                    break
            if job is not None:
                self._run_job(*job)
            with self._changed:
                has_work = self._has_work() and not self._is_stopping
            if has_work:
                try:
                    self._turn()
                except Exception as error:
                    logger.exception("%s", self.served.name)
                    self._refuse_all(APIError(500, "a bug in regard: the request failed", code="internal_error"))
                    del error
        self._refuse_all(stopping())

    def _run_job(self, work: Callable[[ServedModel], Any], found: "Future[Any]") -> None:
        if not found.set_running_or_notify_cancel():  # its client has gone
            return
        try:
            with self._cores.turn(self.served.name):
                result = work(self.served)
        except Exception as error:
            found.set_exception(error)
        else:
            found.set_result(result)


def stopping() -> APIError:
    return APIError(503, "this server is shutting down; try again later", code="shutting_down", retry_after=5)
