"""The same faults from outside: strace lets a system call of a real `regard train` fail."""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tests.attack.harness import Finished, LeftOutError, Outcome, Row, error_faults
from tests.attack.runs import RECIPES, Place, Recipe, place

FAULTS = 20
CALLS = ("fsync", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat")
ERRORS = ("ENOSPC", "EIO", "EROFS")


def faults(quick: bool) -> Iterator[Outcome]:
    """A run whose system call fails, and then the same command once more."""
    if quick:
        raise LeftOutError("each takes seconds; not in the quick share")
    if shutil.which("strace") is None:
        raise LeftOutError("strace is not installed")
    chance = random.Random(8)
    recipe = RECIPES[0]
    calls = _calls(recipe)
    for name, number in chance.sample(calls, min(FAULTS, len(calls))):
        error = chance.choice(ERRORS)
        with place() as here:
            done = _trace(here, recipe, [f"inject={name}:error={error}:when={number}"])
            found = [] if done.code == 0 else list(error_faults(done, notes=True))
            if "Traceback" in done.errors:
                found.append("a traceback")
            found += here.differences(recipe)
        yield Outcome(f"{recipe.name}: {error} at {name} {number}", found, done.last_line)


def _calls(recipe: Recipe) -> list[tuple[str, int]]:
    """The system calls of a run that change its folder: name, and number among those of this name."""
    with place() as here:
        done = _trace(here, recipe, [])
        if done.code != 0:
            raise LeftOutError(f"strace cannot trace here: {done.last_line}")
        lines = (here.outside / "trace").read_text("utf-8", "replace").splitlines()
    counts: dict[str, int] = {}
    found = []
    for line in lines:
        match = re.match(r"\d+ +(\w+)\((.*)", line)
        if match is None:
            continue
        name = match[1]
        counts[name] = counts.get(name, 0) + 1
        if str(here.run) in match[2] or '"run/' in match[2]:
            found.append((name, counts[name]))
    return found


def _trace(here: Place, recipe: Recipe, expressions: Sequence[str]) -> Finished:
    """Train to the end under strace, with these expressions for its option -e."""
    options = [f"-e{expression}" for expression in [f"trace={','.join(f'?{call}' for call in CALLS)}", *expressions]]
    command = ["strace", "-f", "-y", "-o", str(here.outside / "trace"), *options, sys.executable, "-m", "regard"]
    environment = os.environ | {
        "REGARD_CACHE": str(here.outside / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*command, *recipe.arguments], cwd=here.folder, env=environment, capture_output=True, text=True, check=False
    )
    return Finished(done.returncode, 0.0, 0.0, done.stdout, done.stderr)


ROWS: dict[str, Row] = {"faults by strace": faults}
