"""`make attack`: every hostile input, kill, fault, flip and misuse, a while of fuzzing, and a table of what survived.

python -m tests.attack [--quick] [--minutes N] [--inputs FOLDER] [ROW …]

--quick: a share of each row, no fuzzing. --minutes: of fuzzing, for each reader. --inputs: where its inputs are kept.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tests.attack import faults, flips, fuzz, hostile, kills, sanitizers, server, strace_faults
from tests.attack.harness import QUICK_SECONDS, SECONDS, Case, LeftOutError, Outcome, Row, attempt, preload

QUICK_INPUTS = 20  # of a row


def inputs(cases: Callable[[], Iterator[Case]]) -> Row:
    """A row of hostile inputs; the quick share is every fifth, or fewer of many: at most about QUICK_INPUTS."""

    def row(quick: bool) -> list[Outcome]:
        every = max(5, sum(1 for _ in cases()) // QUICK_INPUTS) if quick else 1
        return [attempt(case, QUICK_SECONDS if quick else SECONDS) for case in islice(cases(), 0, None, every)]

    return row


ROWS: dict[str, Row] = {
    **{name: inputs(cases) for name, cases in hostile.ROWS.items()},
    **kills.ROWS,
    **faults.ROWS,
    **strace_faults.ROWS,
    **flips.ROWS,
    **sanitizers.ROWS,
    **server.ROWS,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("rows", nargs="*", help="parts of the names of rows; none: all")
    parser.add_argument("--quick", action="store_true", help="a share of each row, no fuzzing")
    parser.add_argument("--minutes", type=float, default=0.5, help="of fuzzing, for each reader")
    parser.add_argument("--inputs", type=Path, help="a folder for the inputs that fuzzing finds")
    wanted = parser.parse_args()
    print(f"{'row':34}{'tried':>10}{'survived':>10}{'slowest':>10}{'largest':>10}", flush=True)
    rows = {name: row for name, row in ROWS.items() if _is_wanted(name, wanted.rows)}
    if rows:
        preload()
    failed = sum(try_row(name, row, wanted.quick) for name, row in rows.items())
    if not wanted.quick:
        failed += fuzz_readers(wanted.rows, wanted.minutes, wanted.inputs)
    return 1 if failed else 0


def _is_wanted(row: str, words: Sequence[str]) -> bool:
    return not words or any(word in row for word in words)


def try_row(name: str, row: Row, quick: bool) -> int:
    """Print a row of the table, and below it the attempts that regard did not survive. Returns their number."""
    try:
        outcomes = list(row(quick))
    except LeftOutError as reason:
        print(f"{name:34} left out: {reason}", flush=True)
        return 0
    bad = [outcome for outcome in outcomes if outcome.faults]
    print(f"{name:34}{len(outcomes):>10}{len(outcomes) - len(bad):>10}{_most(outcomes)}", flush=True)
    for outcome in bad:
        print(f"    {outcome.name}: {'; '.join(outcome.faults)} | {outcome.line[:120]!r}", flush=True)
    return len(bad)


def fuzz_readers(words: Sequence[str], minutes: float, inputs: Path | None) -> int:
    """Fuzz each reader for so long; returns how many have a finding."""
    targets = [target for target in fuzz.target_names() if _is_wanted(f"fuzz {target}", words)]
    if targets and (reason := fuzz.why_missing()):
        print(f"fuzz: left out, {reason}")
        return 0
    failed = 0
    for target in targets:
        found = fuzz.fuzz(target, 60 * minutes, inputs and inputs / target)
        failed += bool(found.finding)
        row = f"fuzz {target}"
        print(f"{row:34}{found.tried:>10}{found.tried - bool(found.finding):>10}", flush=True)
        if found.finding:
            print(f"    {found.finding} | {found.data[:200]!r}", flush=True)
    return failed


def _most(outcomes: list[Outcome]) -> str:
    """The longest time and the most memory, where a row measures them."""
    seconds = [outcome.seconds for outcome in outcomes if outcome.seconds is not None]
    megabytes = [outcome.megabytes for outcome in outcomes if outcome.megabytes is not None]
    return (f"{max(seconds):>8.1f} s" if seconds else "") + (f"{max(megabytes):>7.0f} MB" if megabytes else "")


sys.exit(main())
