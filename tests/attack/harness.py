"""Runs one hostile command in a process of its own and says whether regard survived it.

Survived means: our own error in one line on standard error, exit code 2, nothing on standard output, no file made or
changed, no canary, no terminal escape, at most SECONDS of time and MEGABYTES above what an idle process takes.

A case forks a parent that has imported regard but has computed nothing, so that a case costs milliseconds instead of
the seconds that importing torch takes.
"""

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 5.0
MEGABYTES = 500
CANARY = "PWNED"  # hostile code would make a file of this name


@dataclass(frozen=True)
class Case:
    """A command in a folder with these files. `accepted`: the input is odd but legal, so exit 0 is fine too."""

    name: str
    arguments: Sequence[str]
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    accepted: bool = False


@dataclass(frozen=True)
class Outcome:
    """What happened; `faults` is empty where regard survived."""

    case: Case
    faults: tuple[str, ...]
    seconds: float
    megabytes: float
    line: str


def preload() -> None:
    """Import what a command imports, so that a fork need not."""
    import torch  # noqa: F401

    import regard.cli
    import regard.huggingface
    import regard.tasks.loading  # noqa: F401
    from regard import ops

    ops.why_disabled()  # compiles the library where that was not done yet


def attempt(case: Case, base_megabytes: float = 0.0) -> Outcome:
    """Run a case and judge it."""
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name, "case")
        for path, content in case.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        folder.mkdir(exist_ok=True)
        before = _contents(folder)
        started = time.monotonic()
        code, megabytes, output, errors = _run(case, folder, Path(name))
        seconds = time.monotonic() - started
        faults = tuple(_faults(case, code, output, errors, folder, before))
    if seconds > SECONDS:
        faults += (f"took {seconds:.1f} s",)
    if megabytes - base_megabytes > MEGABYTES:
        faults += (f"took {megabytes - base_megabytes:.0f} MB above an idle process",)
    return Outcome(case, faults, seconds, megabytes, errors.strip().splitlines()[-1] if errors.strip() else "")


def base_megabytes() -> float:
    """What a process takes that does nothing but answer `regard --version`."""
    return attempt(Case("idle", ["--version"], accepted=True)).megabytes


def _run(case: Case, folder: Path, outside: Path) -> tuple[int, float, str, str]:
    (outside / "stdin").write_bytes(case.stdin)
    child = os.fork()
    if child == 0:
        _child(case, folder, outside)
    deadline = time.monotonic() + SECONDS + 2
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            break
        time.sleep(0.005)
    texts = [(outside / name).read_text("utf-8", "replace") for name in ("stdout", "stderr")]
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024, texts[0], texts[1]


def _child(case: Case, folder: Path, outside: Path) -> None:
    """Never returns: the command ends this process."""
    code = 70
    try:
        os.setsid()
        for number, name, flags in (
            (0, "stdin", os.O_RDONLY),
            (1, "stdout", os.O_WRONLY | os.O_CREAT),
            (2, "stderr", os.O_WRONLY | os.O_CREAT),
        ):
            os.dup2(os.open(outside / name, flags, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0, "r"), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        limit = 12 * 2**30  # a bomb ends with MemoryError here, not with the machine
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = str(outside / "cache")
        sys.argv = ["regard", *case.arguments]
        from regard.cli import main

        try:
            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 70
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _faults(case: Case, code: int, output: str, errors: str, folder: Path, before: dict[str, bytes]) -> Iterator[str]:
    if code == 0 and case.accepted:
        return
    if code < 0:
        yield f"killed by signal {-code}"
    elif code != 2:
        yield f"exit code {code}, wanted 2"
    lines = errors.splitlines()
    if case.arguments[0] == "train" and lines:  # notes about the data come before
        lines = lines[-1:]
    if len(lines) != 1 or not lines[0].startswith("error: "):
        yield f"{len(lines)} lines on standard error, wanted one that begins with 'error: '"
    if "Traceback" in errors or "panicked at" in errors:
        yield "a traceback"
    if any((ord(sign) < 32 and sign not in "\n\t") or 127 <= ord(sign) < 160 for sign in output + errors):
        yield "a control character reached the terminal"
    if (folder / CANARY).exists() or any(path.name == CANARY for path in folder.rglob("*")):
        yield "the canary: code of the input ran"
    elif _contents(folder) != before:
        yield "files were made or changed"


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def tidy(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
