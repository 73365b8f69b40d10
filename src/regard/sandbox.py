"""Run a small script on untrusted input in a child process, with bounds on processor time, memory and output.

A chat template is a program, and a tokenizer.json can make the tokenizer library loop, panic or allocate without bound.
Python cannot stop such work inside its own process; a child process can be killed. The child lives as long as its
`Worker` and answers many requests, so that a request costs microseconds, not the start of a Python process.

The bound on time is one of processor time, which the script sets for each request (`setitimer`): a loaded machine makes
a harmless request no worse. Time on the clock only ends what waits for ever.
"""

import atexit
import json
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from regard.errors import RegardError

START_SECONDS = 120.0  # on the clock, for the start of a Python process on a loaded machine
CLOCK = 60  # seconds on the clock for each second of processor time


class LimitError(RegardError):
    """The child exceeded a bound, or crashed. The message ends a sentence: "took more than 2 s"."""


class Worker:
    """A child process that runs `script`: one line of JSON in, one line of JSON out, restarted after it was killed."""

    def __init__(self, script: Path, *, seconds: float, megabytes: int, max_bytes: int) -> None:
        self._command = [sys.executable, "-I", str(script), str(megabytes), str(seconds)]
        self._seconds, self._megabytes, self._max_bytes = seconds, megabytes, max_bytes
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, request: Any) -> Any:
        """The script's answer; LimitError where it took too long, too much memory, wrote too much or crashed."""
        with self._lock:
            child = self._running()
            try:
                return json.loads(self._exchange(child, json.dumps(request).encode() + b"\n"))
            except LimitError:
                self._stop()
                raise

    def close(self) -> None:
        """End the child process; the next request starts another."""
        with self._lock:
            self._stop()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )
            self._answer(
                self._child, START_SECONDS
            )  # it says when it is ready: a cold import is not the request's time
        return self._child

    def _exchange(self, child: "subprocess.Popen[bytes]", line: bytes) -> bytes:
        assert child.stdin is not None
        try:
            child.stdin.write(line)
        except OSError:
            raise self._crashed(child) from None
        return self._answer(child, self._seconds * CLOCK)

    def _answer(self, child: "subprocess.Popen[bytes]", seconds: float) -> bytes:
        """The next line of the child, within so many seconds on the clock."""
        assert child.stdout is not None
        found, deadline = b"", time.monotonic() + seconds
        while not found.endswith(b"\n"):
            if not select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise LimitError(f"took more than {seconds:g} s")
            part = child.stdout.read(1 << 16)
            if not part:
                raise self._crashed(child)
            found += part
            if len(found) > self._max_bytes:
                raise LimitError(f"wrote more than {self._max_bytes:,} bytes")
        return found

    def _crashed(self, child: "subprocess.Popen[bytes]") -> LimitError:
        code = child.wait()
        if hasattr(signal, "SIGPROF") and code == -signal.SIGPROF:
            return LimitError(f"took more than {self._seconds:g} s")
        return LimitError(f"crashed, or took more than {self._megabytes} MB")

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
            self._child = None
