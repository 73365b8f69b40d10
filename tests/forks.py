"""`regard …` in processes of their own that need not load torch: forks of one process that has imported it.

The parent computes nothing, so it has no threads and a fork of it is as good as a new process.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO


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

    def run(
        self, *arguments: object, stdin: str | bytes | None = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess:
        words = [str(argument) for argument in arguments]
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            (place / "stdin").write_bytes(stdin if isinstance(stdin, bytes) else (stdin or "").encode())
            where = {"cwd": str(cwd or self._folder), "place": name, "environment": {**os.environ}}
            self._parent.stdin.write(json.dumps({"arguments": words, **where}) + "\n")
            self._parent.stdin.flush()
            code = int(self._parent.stdout.readline())
            output, errors = ((place / each).read_bytes() for each in ("stdout", "stderr"))
        if isinstance(stdin, bytes):
            return subprocess.CompletedProcess(words, code, output, errors)
        return subprocess.CompletedProcess(words, code, output.decode(), errors.decode())

    def close(self) -> None:
        self._parent.communicate()


def _serve(requests: IO[str]) -> None:
    for module in ("torch._dynamo", "regard.cli", "regard.tasks.loading", "regard.tasks.recipe"):
        importlib.import_module(module)
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _command(**request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


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
