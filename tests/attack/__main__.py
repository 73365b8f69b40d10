"""`make attack`: every hostile input once, and a table of what was tried and what survived.

python -m tests.attack [--quick] [ROW …]
"""

import sys

from tests.attack.harness import attempt, base_megabytes, preload
from tests.attack.hostile import ROWS


def main() -> int:
    quick = "--quick" in sys.argv
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    preload()
    base = base_megabytes()
    failed = 0
    print(f"{'row':34}{'tried':>7}{'survived':>10}{'slowest':>10}{'largest':>10}")
    for row, cases in ROWS.items():
        if wanted and not any(word in row for word in wanted):
            continue
        outcomes = [attempt(case, base) for number, case in enumerate(cases()) if not quick or number % 5 == 0]
        bad = [outcome for outcome in outcomes if outcome.faults]
        failed += len(bad)
        slowest = max(outcome.seconds for outcome in outcomes)
        largest = max(outcome.megabytes for outcome in outcomes) - base
        print(
            f"{row:34}{len(outcomes):>7}{len(outcomes) - len(bad):>10}{slowest:>8.1f} s{largest:>7.0f} MB", flush=True
        )
        for outcome in bad:
            print(f"    {outcome.case.name}: {'; '.join(outcome.faults)} | {outcome.line[:120]!r}", flush=True)
    return 1 if failed else 0


sys.exit(main())
