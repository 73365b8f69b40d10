"""Bad rows of the user's files: where they are, what is wrong with them, and the report of those skipped."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

OnError = Literal["stop", "skip"]
CONTROL_CHARACTER = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_EXAMPLES = 5  # bad rows that a report shows


class RowProblem(NamedTuple):
    """What is wrong with a row: the kind of problem, and the detail."""

    reason: str
    detail: str


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: file, line, the kind of problem, and the detail."""

    file: Path
    line: int
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}: {self.detail}"


@dataclass
class BadRows:
    """Report of skipped rows: how many of each kind, and the first five.

    `excluded` counts valid rows that are not used as examples, by reason. `notes` say what else a reader found.
    """

    first: list[BadRow] = field(default_factory=list)
    by_reason: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.by_reason.total()

    def add(self, bad: BadRow) -> None:
        self.by_reason[bad.reason] += 1
        if len(self.first) < MAX_EXAMPLES:
            self.first.append(bad)

    def summary(self) -> list[str]:
        """Lines for the user: the counts, then the first bad rows. Empty if nothing was skipped."""
        others = [*dict.fromkeys(self.notes), *(f"left out: {count:,} {why}" for why, count in self.excluded.items())]
        if not self.count:
            return others
        kinds = ", ".join(f"{reason} {count:,}" for reason, count in self.by_reason.most_common())
        return [
            *others,
            f"bad lines left out: {self.count:,} ({kinds}); the first:",
            *(f"  {bad}" for bad in self.first),
        ]
