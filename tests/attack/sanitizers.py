"""Right uses and misuses of every op, with the C library built for AddressSanitizer and UBSan.

The uses and the judgement are those of tests/ops/misuse/. They run in a child process with libasan preloaded, once for
each instruction set that the kernels have code for. A sanitizer's report ends the child: its use is the fault, and
another child goes on with the next use. `--quick` takes every fifth use and the library as it is installed, since
building one for the sanitizers takes longer than all other rows.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.attack.harness import LeftOutError, Outcome, Row

SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Flags that leave the kernels narrower vectors than this processor has.
INSTRUCTION_SETS = {"native": [], "AVX2": ["-mno-avx512f"], "no AVX2": ["-mno-avx512f", "-mno-avx2"]}
# Memory is filled with NaN before the kernels write it, so that what they leave out shows.
ASAN_OPTIONS = "detect_leaks=0:max_malloc_fill_size=1048576:malloc_fill_byte=255"
MAX_SECONDS = 900
MAX_REPORTS = 20  # children that may end before the row gives up


@dataclass(frozen=True)
class Build:
    """A library to test: extra compiler flags, and the environment of the child."""

    name: str
    flags: list[str]
    environment: dict[str, str]


def _misuse(quick: bool) -> Iterator[Outcome]:
    """One outcome a use and build."""
    if not quick and (reason := why_missing()):
        raise LeftOutError(reason)
    with tempfile.TemporaryDirectory(prefix="attack-") as cache:
        for build in builds(quick, cache):
            yield from _run(build, every=5 if quick else 1)


def why_missing() -> str | None:
    """Why there can be no sanitizers; None if there can."""
    if not shutil.which("gcc"):
        return "there is no gcc"
    return next((f"gcc has no {path}" for path in _preloaded() if not path.is_absolute()), None)


def _preloaded() -> list[Path]:
    """ASan comes before all others, and then libstdc++: without it, ASan ends a process that throws."""
    return [_library("libasan.so"), _library("libstdc++.so.6")]


def _library(name: str) -> Path:
    """Where gcc has it; the name alone if it has not."""
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


def builds(quick: bool, cache: str) -> list[Build]:
    if quick:
        return [Build("as installed", [], {})]
    environment = {
        "LD_PRELOAD": " ".join(map(str, _preloaded())),
        "ASAN_OPTIONS": ASAN_OPTIONS,
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "XDG_CACHE_HOME": cache,
        "CC": "gcc",
    }
    return [Build(name, [*flags, *SANITIZED], environment) for name, flags in INSTRUCTION_SETS.items()]


def _run(build: Build, every: int) -> Iterator[Outcome]:
    """Children one after the other, each from the use behind the one that ended the child before."""
    first = 0
    for _ in range(MAX_REPORTS):
        started = time.monotonic()
        child = [sys.executable, "-m", "tests.attack.sanitizers", str(first), str(every), *build.flags]
        done = subprocess.run(
            child,
            env=os.environ | build.environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MAX_SECONDS,
            check=False,
        )
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        judged = [line for line in lines if line[0] == "judged"]
        for _, name, seconds, megabytes, fault in judged:
            yield Outcome(f"{build.name}: {name}", (fault,) if fault else (), "", float(seconds), float(megabytes))
        if done.returncode == 0:
            return
        begun = [line for line in lines if line[0] == "begun"]
        name = begun[-1][2] if begun else "the start"
        fault = f"the process ended with {done.returncode}: {_report(done.stderr)}"
        yield Outcome(f"{build.name}: {name}", (fault,), seconds=time.monotonic() - started)
        if not begun:
            return
        first = int(begun[-1][1]) + 1


def _report(errors: str) -> str:
    """The line of a sanitizer's report that says what and where."""
    lines = [line.strip() for line in errors.splitlines() if re.search(r"ERROR: |runtime error: |SUMMARY: ", line)]
    return " | ".join(lines[:2]) or (errors.strip().splitlines() or ["no report"])[-1]


def _child(first: int, every: int, flags: list[str]) -> None:
    """Judge the uses from number `first` on; a line before and after each says how far this process came."""
    import resource
    import warnings

    import torch

    from regard.ops import library

    library.FLAGS += flags
    if library.why_missing() is not None:
        sys.exit(f"no library: {library.why_missing()}")
    from tests.ops.misuse.judging import fault_of
    from tests.ops.misuse.table import all_uses, missing_ops

    warnings.simplefilter("ignore")
    if missing_ops():
        sys.exit(f"ops without uses: {', '.join(sorted(missing_ops()))}; add them to tests/ops/misuse/")
    for number, use in enumerate(all_uses()):
        if number < first or number % every:
            continue
        print("begun", number, use.name, sep="\t", flush=True)
        torch.set_num_threads(1 + number % 3)
        started = time.monotonic()
        with torch.no_grad():
            fault = " ".join((fault_of(use) or "").split())
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print("judged", use.name, f"{time.monotonic() - started:.3f}", f"{megabytes:.0f}", fault, sep="\t", flush=True)


ROWS: dict[str, Row] = {"misuse of ops (ASan, UBSan)": _misuse}


if __name__ == "__main__":
    _child(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
