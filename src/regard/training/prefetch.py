"""Batches on the device, on an accelerator prepared in advance by a thread of their own.

On a CPU the same cores prepare batches and compute, and a thread has nothing to gain. The order is that of the task. A
batch carries the position after it: what was prepared but not trained on is prepared again when the run is resumed.
"""

from collections.abc import Generator, Iterator
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, TypeVar

from regard.runtime import Runtime

DEPTH = 2  # batches prepared in advance

Position = TypeVar("Position")
Batch = TypeVar("Batch")


def on_device(
    batches: Iterator[tuple[Position, Batch]], runtime: Runtime
) -> Generator[tuple[Position, Batch], None, None]:
    """The batches moved to the runtime's device, in their order. Close it to end its thread."""
    moved = ((position, runtime.move(batch)) for position, batch in batches)
    return _prefetched(moved) if runtime.prefetches else moved


def _prefetched(items: Iterator[Any]) -> Generator[Any, None, None]:
    queue: Queue[Any] = Queue(maxsize=DEPTH)
    closed = Event()
    thread = Thread(target=_fill, args=(queue, items, closed), name="batches", daemon=True)
    thread.start()
    try:
        while True:
            found = queue.get()
            if isinstance(found, _End):
                if found.error is not None:
                    raise found.error
                return
            yield found
    finally:
        closed.set()
        while thread.is_alive():  # it may wait for room in the queue
            try:
                queue.get_nowait()
            except Empty:
                thread.join(timeout=0.01)


class _End:
    """The end of the batches, or the error that they ended with."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def _fill(queue: "Queue[Any]", items: Iterator[Any], closed: Event) -> None:
    try:
        for item in items:
            if closed.is_set():
                return
            queue.put(item)
        queue.put(_End())
    except BaseException as error:  # raised where the batch is asked for
        queue.put(_End(error))
