"""`make attack`: every hostile input, kill, fault and flipped bit, and a table of what was tried and what survived.

python -m tests.attack [--quick] [ROW …]
"""

import sys
from collections.abc import Callable, Iterator

from tests.attack import faults, flips, hostile, kills, strace_faults
from tests.attack.harness import Case, LeftOutError, Outcome, Row, attempt, preload


def inputs(cases: Callable[[], Iterator[Case]]) -> Row:
    """A row of hostile inputs; every fifth is the quick share."""
    return lambda quick: [attempt(case) for number, case in enumerate(cases()) if not quick or number % 5 == 0]


ROWS: dict[str, Row] = {
    **{name: inputs(cases) for name, cases in hostile.ROWS.items()},
    **kills.ROWS,
    **faults.ROWS,
    **strace_faults.ROWS,
    **flips.ROWS,
}


def main() -> int:
    quick = "--quick" in sys.argv
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    preload()
    failed = 0
    print(f"{'row':34}{'tried':>7}{'survived':>10}{'slowest':>10}{'largest':>10}", flush=True)
    for name, row in ROWS.items():
        if not wanted or any(word in name for word in wanted):
            failed += try_row(name, row, quick)
    return 1 if failed else 0


def try_row(name: str, row: Row, quick: bool) -> int:
    """Print a row of the table, and below it the attempts that regard did not survive. Returns their number."""
    try:
        outcomes = list(row(quick))
    except LeftOutError as reason:
        print(f"{name:34} left out: {reason}", flush=True)
        return 0
    bad = [outcome for outcome in outcomes if outcome.faults]
    print(f"{name:34}{len(outcomes):>7}{len(outcomes) - len(bad):>10}{_most(outcomes)}", flush=True)
    for outcome in bad:
        print(f"    {outcome.name}: {'; '.join(outcome.faults)} | {outcome.line[:120]!r}", flush=True)
    return len(bad)


def _most(outcomes: list[Outcome]) -> str:
    """The longest time and the most memory, where a row measures them."""
    seconds = [outcome.seconds for outcome in outcomes if outcome.seconds is not None]
    megabytes = [outcome.megabytes for outcome in outcomes if outcome.megabytes is not None]
    return (f"{max(seconds):>8.1f} s" if seconds else "") + (f"{max(megabytes):>7.0f} MB" if megabytes else "")


sys.exit(main())
