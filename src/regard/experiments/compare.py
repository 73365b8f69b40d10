"""Five translators side by side: what they score, what they cost, what they can carry over how far."""

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.experiments.ladder import Standing, Stopped, climb
from regard.experiments.long_memory import Remembered, study
from regard.experiments.report import length_table, memory_table, table, write_report
from regard.progress import follow, note
from regard.recipes.translator_comparison import SPECS
from regard.synthetic.memory import NUM_LETTERS

# What --quick changes: less of everything, so that all five are done in under ten minutes on two cores.
QUICK = ["training.steps=250", "training.evaluate_every=250", "training.checkpoint_every=250", "data.num_pairs=50000"]
QUICK_PAIRS = 400  # scored of what was held out


@dataclass(frozen=True)
class Comparison:
    """What `regard compare` found."""

    standings: list[Standing]
    remembered: list[Remembered]
    text: str
    files: list[Path]

    def as_dict(self) -> dict[str, Any]:
        return {
            "standings": [asdict(one) for one in self.standings],
            "memory": [asdict(one) for one in self.remembered],
            "files": [str(path) for path in self.files],
        }


def compare_rungs(
    folder: Path,
    paths: Sequence[Path],
    assignments: Sequence[str],
    *,
    rungs: Sequence[str],
    seeds: int,
    quick: bool,
    memory: bool,
    command: str = "",
) -> Comparison:
    """Train, score and study the rungs (none named: all), and write the report into the folder.

    `command` is what the report says it was made with. The report is written before the study, and again with it.
    """
    rungs = rungs or list(SPECS)
    assignments = [*(QUICK if quick else []), *assignments]
    most = QUICK_PAIRS if quick else None
    standings = climb(folder, paths, assignments, rungs=rungs, seeds=seeds, most=most, follow=follow, note=note)
    remembered: list[Remembered] = []
    found = _reported(folder, command, standings, remembered)
    if memory:
        for name in rungs:
            note(f"{name}: copy, reverse, recall")
            remembered += _studied(name, quick)
        found = _reported(folder, command, standings, remembered)
    return found


def _reported(folder: Path, command: str, standings: list[Standing], remembered: list[Remembered]) -> Comparison:
    text = _text(standings, remembered)
    return Comparison(standings, remembered, text, write_report(folder, command, standings, remembered, text))


def _studied(name: str, quick: bool) -> list[Remembered]:
    if quick:
        return list(study(name, longest=16, steps=200, distances=(1, 2, 4, 8, 12, 16)))
    return list(study(name, longest=40, steps=1000, distances=(1, 5, 10, 15, 20, 25, 30, 35, 40)))


def _text(standings: Sequence[Standing], remembered: Sequence[Remembered]) -> str:
    file = io.StringIO()
    console = Console(file=file, width=170, highlight=False)
    console.print(table(standings))
    console.print(length_table(standings, "bleu"))
    console.print(length_table(standings, "exact_match"))
    if remembered:
        console.print(
            f"Share of right letters in what is written back, by letters read; by chance {1 / NUM_LETTERS:.2f}"
        )
        console.print(memory_table(remembered))
    return file.getvalue()


__all__ = ["Comparison", "Stopped", "compare_rungs"]
