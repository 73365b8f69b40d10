"""`regard …` in processes of their own that need not load torch: forks of one process that has imported it.

The parent computes nothing, so it has no threads and a fork of it is as good as a new process.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

RUNNING = 1000  # no exit code


class Forks:
    """Runs commands; `setup` is Python code that registers more before the command line is imported."""

    def __init__(self, setup: str = "", folder: Path | None = None) -> None:
        paths = os.pathsep.join([*([str(folder)] if folder else []), *(path for path in sys.path if path)])
        self._parent = subprocess.Popen(
            [sys.executable, __file__, setup],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self._folder = folder or Path.cwd()

    def start(self, *arguments: object) -> "Fork":
        """Start a command whose output nobody reads."""
        words = [str(argument) for argument in arguments]
        place = tempfile.mkdtemp()
        Path(place, "stdin").touch()
        where = {"cwd": str(self._folder), "place": place, "environment": {**os.environ}}
        return Fork(self._ask({"arguments": words, **where, "waits": False}), Path(place), self._ask)

    def run(
        self, *arguments: object, stdin: str | bytes | None = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess:
        words = [str(argument) for argument in arguments]
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            (place / "stdin").write_bytes(stdin if isinstance(stdin, bytes) else (stdin or "").encode())
            where = {"cwd": str(cwd or self._folder), "place": name, "environment": {**os.environ}}
            code = self._ask({"arguments": words, **where, "waits": True})
            output, errors = ((place / each).read_bytes() for each in ("stdout", "stderr"))
        if isinstance(stdin, bytes):
            return subprocess.CompletedProcess(words, code, output, errors)
        return subprocess.CompletedProcess(words, code, output.decode(), errors.decode())

    def _ask(self, request: dict[str, object]) -> int:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(request) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def close(self) -> None:
        self._parent.communicate()


class Fork:
    """A command that runs on while the test does something else."""

    def __init__(self, pid: int, place: Path, ask: Callable[[dict[str, object]], int]) -> None:
        self.pid = pid
        self._place, self._ask = place, ask

    def poll(self) -> int | None:
        """The exit code, or minus the signal; None while it runs."""
        code = self._ask({"poll": self.pid})
        return None if code == RUNNING else code

    def wait(self) -> tuple[int, str]:
        """The exit code, or minus the signal, and what it wrote on standard error."""
        code = self._ask({"wait": self.pid})
        errors = (self._place / "stderr").read_text(encoding="utf-8")
        shutil.rmtree(self._place)
        return code, errors


def _serve(requests: IO[str]) -> None:
    for module in ("torch._dynamo", "regard.cli", "regard.tasks.loading", "regard.tasks.recipe"):
        importlib.import_module(module)
    ended: dict[int, int] = {}
    for line in requests:
        print(_answer(json.loads(line), ended), flush=True)  # noqa: T201


def _answer(request: dict[str, Any], ended: dict[int, int]) -> int:
    """The exit code of a command, or the process id of one that runs on; `ended` has the codes of those that ended."""
    child = request.get("poll") or request.get("wait")
    if child is None:
        waits = request.pop("waits")
        child = os.fork()
        if not child:
            _command(**request)
        if not waits:
            return child
    if child not in ended:
        done, status = os.waitpid(child, os.WNOHANG if "poll" in request else 0)
        if not done:
            return RUNNING
        ended[child] = os.waitstatus_to_exitcode(status)
    return ended[child]


def _command(arguments: list[str], cwd: str, place: str, environment: dict[str, str]) -> None:
    from regard.cli import main

    code = 70
    try:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
            os.dup2(os.open(Path(place, name), flags), number)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0, "r"), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        os.environ.update(environment)
        os.chdir(cwd)
        sys.argv = ["regard", *arguments]
        main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 70
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    exec(sys.argv[1])
    _serve(sys.stdin)
