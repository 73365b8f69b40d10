"""Runs commands in processes of their own, and says whether regard survived a hostile one.

Survived means: our own error in one line on standard error, exit code 2, nothing on standard output, no file made or
changed, no canary, no terminal escape, at most SECONDS of processor time, and MEGABYTES above what an idle process
takes. Time on the clock depends on what else the machine does, so it only ends what hangs. The quick share, which runs
on any machine, bounds the processor time by QUICK_SECONDS: a slow processor takes several times as long.

A command forks a parent that has imported regard but has computed nothing, so that it costs milliseconds instead of
the seconds that importing torch takes. So a row must not compute here, but in a child (`in_child`).
"""

import json
import os
import pty
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

SECONDS = 5.0
QUICK_SECONDS = 30.0
HANGS = 300.0  # seconds on the clock after which a command is killed
MEGABYTES = 500
COLORS = re.compile(r"\x1b\[[0-9;]*m")  # and bold: a figure has them on a terminal, and they harm nobody
CANARY = "PWNED"  # hostile code would make a file of this name


@dataclass(frozen=True)
class Case:
    """A command in a folder with these files.

    `accepted`: the input is odd but legal, so exit 0 is fine too. On a terminal no control character may come out.
    """

    name: str
    arguments: Sequence[str]
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    accepted: bool = False
    terminal: bool = False  # standard output is a terminal
    page: str = ""  # a page or figure it writes where it is accepted; no text of the input may be markup there


@dataclass(frozen=True)
class Outcome:
    """What one attempt came to; `faults` is empty where regard survived."""

    name: str
    faults: Sequence[str]
    line: str = ""  # what regard said last
    seconds: float | None = None
    megabytes: float | None = None  # above an idle process


Row = Callable[[bool], Iterable[Outcome]]  # the outcomes of a row of the table; True: its quick share


class LeftOutError(Exception):
    """This machine cannot try a row; the text says why."""


def preload() -> None:
    """Import what a command imports, so that a fork need not."""
    import torch
    import torch._dynamo  # by an optimizer

    import regard.cli
    import regard.huggingface
    import regard.recipes
    import regard.tasks.loading
    import regard.tasks.recipe
    from regard import ops

    torch.set_num_threads(1)  # of a run too: its weights must not depend on how busy the machine is
    for recipe in regard.recipes.RECIPES:
        regard.recipes.find(recipe)
    ops.why_disabled()  # compiles the library where that was not done yet


# ------------------------------------------------ hostile inputs


def attempt(case: Case, most: float = SECONDS) -> Outcome:
    """Run a case and judge it; it may take `most` seconds of processor time."""
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name, "case")
        for path, content in case.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        folder.mkdir(exist_ok=True)
        before = _contents(folder)
        done = run(case.arguments, folder, Path(name), stdin=case.stdin, seconds=HANGS, terminal=case.terminal)
        faults = list(_faults(case, done, folder, before))
    megabytes = done.megabytes - idle_megabytes()
    if done.seconds > most:
        faults.append(f"took {done.seconds:.1f} s")
    if megabytes > MEGABYTES:
        faults.append(f"took {megabytes:.0f} MB above an idle process")
    return Outcome(case.name, faults, done.last_line, done.seconds, megabytes)


@cache
def idle_megabytes() -> float:
    """What a process takes that does nothing but answer `regard --version`."""
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        return run(["--version"], Path(name), Path(name)).megabytes


def _faults(case: Case, done: "Finished", folder: Path, before: dict[str, bytes]) -> Iterator[str]:
    if case.terminal and _has_controls(done.output):
        yield "a control character reached the terminal"
    if done.code == 0 and case.accepted:
        if case.page:
            yield from markup_faults(folder / case.page)
        return
    yield from error_faults(done, notes=case.arguments[0] == "train")
    if (folder / CANARY).exists() or any(path.name == CANARY for path in folder.rglob("*")):
        yield "the canary: code of the input ran"
    elif _contents(folder) != before:
        yield "files were made or changed"


def error_faults(done: "Finished", *, notes: bool) -> Iterator[str]:
    """What is wrong with how a command failed; `notes`: lines before the error are fine."""
    if done.code < 0:
        yield f"killed by signal {-done.code}"
    elif done.code != 2:
        yield f"exit code {done.code}, wanted 2"
    lines = done.errors.splitlines()
    if notes:
        lines = lines[-1:]
    if len(lines) != 1 or not lines[0].startswith("error: "):
        yield f"{len(lines)} lines on standard error, wanted one that begins with 'error: '"
    if "Traceback" in done.errors or "panicked at" in done.errors:
        yield "a traceback"
    if _has_controls(done.output + done.errors):
        yield "a control character reached the terminal"


def markup_faults(page: Path) -> Iterator[str]:
    """An element or attribute named "owned", which a hostile text would begin; an .svg must be XML too."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            found.extend(name for name in (tag, *(name for name, _ in attributes)) if name in ("owned", "onload"))

    text = page.read_text("utf-8")
    Reader(convert_charrefs=False).feed(text)
    if found:
        yield f"text of the input became markup: {found[0]}"
    if page.suffix == ".svg":
        try:
            ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            yield f"the figure is not XML: {error}"


def _has_controls(text: str) -> bool:
    return any((ord(sign) < 32 and sign not in "\n\t") or 127 <= ord(sign) < 160 for sign in text)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ------------------------------------------------ commands in forks


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int  # the exit code, or minus the signal
    seconds: float  # of processor time, its children's included
    megabytes: float
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        return self.errors.strip().splitlines()[-1] if self.errors.strip() else ""


def run(
    arguments: Sequence[str],
    folder: Path,
    outside: Path,
    *,
    stdin: bytes = b"",
    seconds: float = 600.0,
    prepare: Callable[[], None] = lambda: None,
    terminal: bool = False,
) -> Finished:
    """Run `regard …` in a folder and wait; what it takes and writes besides is in `outside`."""
    (outside / "stdin").write_bytes(stdin)
    if not terminal:
        return wait(start(arguments, folder, outside, prepare), outside, seconds)
    ours, theirs = pty.openpty()
    child = start(arguments, folder, outside, lambda: os.dup2(theirs, 1) and None)
    done = wait(child, outside, seconds, ours)
    os.close(ours)
    os.close(theirs)
    return done


def start(arguments: Sequence[str], folder: Path, outside: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """Start `regard …` in a fork, after `prepare()` there. Returns its process id."""
    (outside / "stdin").touch()
    child = os.fork()
    if child == 0:
        _command(arguments, folder, outside, prepare)
    return child


def wait(child: int, outside: Path, seconds: float = 600.0, terminal: int | None = None) -> Finished:
    """Wait for a command; kill it after so many seconds. On a terminal, its output is what comes out there."""
    deadline, shown = time.monotonic() + seconds, b""
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        shown += _waiting(terminal)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            break
    output, errors = ((outside / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    if terminal is not None:
        output = COLORS.sub("", shown.decode("utf-8", "replace").replace("\r\n", "\n"))
    seconds = usage.ru_utime + usage.ru_stime
    return Finished(os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024, output, errors)


def _waiting(terminal: int | None) -> bytes:
    """What was written to the terminal and not read yet; waits a little if nothing was."""
    if terminal is None:
        time.sleep(0.005)
        return b""
    found = b""
    while select.select([terminal], [], [], 0.005)[0]:
        found += os.read(terminal, 1 << 16)
    return found


def _command(arguments: Sequence[str], folder: Path, outside: Path, prepare: Callable[[], None]) -> NoReturn:
    code = 70
    try:
        os.setsid()
        for number, name, flags in (
            (0, "stdin", os.O_RDONLY),
            (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(outside / name, flags, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0, "r"), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        limit = 12 * 2**30  # a bomb ends with MemoryError here, not with the machine
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        os.chdir(folder)
        os.environ["REGARD_CACHE"] = str(outside / "cache")
        sys.argv = ["regard", *arguments]
        prepare()
        from regard.cli import main

        try:
            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 70
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def in_child(attempts: Callable[[], Iterable[Outcome]]) -> list[Outcome]:
    """The outcomes of attempts that compute, in a fork."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            with os.fdopen(writer, "w") as answer:
                json.dump([asdict(outcome) for outcome in attempts()], answer)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child that makes attempts failed; its traceback is above"
    return [Outcome(**values) for values in json.loads(text)]
