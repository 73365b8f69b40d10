"""The log of a run: metrics.jsonl, one line a report, and the same for TensorBoard."""

import json
import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from regard.files import os_errors_named, write_file

METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"

log = logging.getLogger("regard")


class Log:
    """Appends to the metrics of a run. A resumed run first deletes the lines after its checkpoint."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / METRICS
        with os_errors_named(f"write {self.path}"):
            _delete_after(self.path, step)
            self._file = self.path.open("a", encoding="utf-8")
        self._board = Board(folder / TENSORBOARD, step)

    def write(self, step: int, values: dict[str, Any]) -> None:
        line = json.dumps({"step": step} | {name: _json_value(value) for name, value in values.items()})
        with os_errors_named(f"write {self.path}"):
            self._file.write(f"{line}\n")
            self._file.flush()
        self._board.write(step, {name: value for name, value in values.items() if isinstance(value, int | float)})

    def close(self) -> None:
        self._board.close()
        with suppress(OSError):  # of a line that `write` could not write
            self._file.close()


class NoLog:
    """The log of a process that is not rank 0."""

    def write(self, step: int, values: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class Board:
    """An event file of TensorBoard, written without a thread. Training goes on where it cannot be written."""

    def __init__(self, folder: Path, step: int) -> None:
        self.folder = folder
        self._records: RecordWriter | None = None
        self._try(lambda: self._open(step))

    def write(self, step: int, values: dict[str, float]) -> None:
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        self._try(lambda: self._add(Event(step=step, summary=summary)))

    def close(self) -> None:
        if self._records is not None:
            self._try(self._records.close)

    def _open(self, step: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()
        self._records = RecordWriter((self.folder / f"events.out.tfevents.{now}.{os.getpid()}").open("wb"))
        self._add(Event(file_version="brain.Event:2"))
        if step:  # TensorBoard then drops the events of earlier files after this step
            self._add(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))

    def _add(self, event: Event) -> None:
        if self._records is not None:
            event.wall_time = time.time()
            self._records.write(event.SerializeToString())
            self._records.flush()

    def _try(self, task: Callable[[], None]) -> None:
        """Do this, or else write no more events."""
        try:
            task()
        except OSError as error:
            log.warning(
                "cannot write %s: %s; training goes on without TensorBoard", self.folder, error.strerror or error
            )
            records, self._records = self._records, None
            if records is not None:
                with suppress(OSError):  # closing writes what is left
                    records.close()


def _json_value(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are written as strings."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _delete_after(path: Path, step: int) -> None:
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue  # damaged, or a partial line of a run that was killed while writing
    write_file(path, "".join(f"{line}\n" for line in kept).encode())
