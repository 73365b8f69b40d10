"""The progress of a training run on standard error: a live bar in a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import rich.progress
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from regard.errors import escape_controls

if TYPE_CHECKING:
    from regard.training.loop import Report


LINE_SECONDS = 30  # between two lines of progress where there is no terminal

Thing = TypeVar("Thing")


def silence_other_ranks() -> None:
    """Under torchrun: discard what ranks other than 0 print; their errors go to `sys.__stderr__`."""
    if _is_one_of_many() and os.environ["RANK"] != "0":
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends


def note_failure(message: str, exit_code: int) -> None:
    """Print the line of an error; under torchrun once for all processes, which first wait for each other to fail."""
    lines = [message]
    if _is_one_of_many():
        from regard.processes import fail_together  # loads torch

        lines = fail_together(message, exit_code)
    for line in lines:
        note(f"error: {line}", error_stream())


def error_stream() -> TextIO:
    """Where errors go: standard error, also of a rank that was silenced."""
    return sys.__stderr__ or sys.stderr if _is_one_of_many() else sys.stderr


def _is_one_of_many() -> bool:
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1") and "RANK" in os.environ


def note(line: str, file: TextIO | None = None) -> None:
    """Print a line on standard error, so that standard output has the result alone."""
    print(escape_controls(line), file=file or sys.stderr)


def track(things: Sequence[Thing]) -> Iterable[Thing]:
    """A loop over these, with a bar in a terminal."""
    console = Console(stderr=True)
    return rich.progress.track(things, "", console=console, disable=not console.is_terminal, transient=True)


def follow(reports: "Iterable[Report]", clock: Callable[[], float] = time.monotonic) -> "Report":
    """Draw the reports as they come; returns the last one.

    Outside a terminal a line is written after each evaluation, and at least every 30 seconds.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("step {task.completed:>5,.0f} of {task.total:,.0f}"),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        console=console,
        disable=not console.is_terminal,
    )
    last = None
    evaluated: dict[str, float] = {}
    written = clock()
    with bar:
        row = bar.add_task("", total=None)
        for report in reports:
            last = report
            if report.note:
                console.print(escape_controls(report.note), style="dim", highlight=False, markup=False, soft_wrap=True)
            if report.loss is None:
                continue
            bar.update(row, completed=report.step, total=report.steps, description=_line(report))
            is_due = report.validation != evaluated or clock() - written >= LINE_SECONDS
            if is_due and not console.is_terminal:
                sys.stderr.write(f"step {report.step:,} of {report.steps:,}: {_line(report)}\n")
                sys.stderr.flush()
                written = clock()
            evaluated = report.validation
    assert last is not None
    return last


def _line(report: "Report") -> str:
    parts = [
        f"loss {report.loss:.3f}",
        f"{report.tokens_per_second:,.0f} {report.unit}/s",
        f"{_time(report.seconds_left)} left",
    ]
    if report.utilization is not None:
        parts.insert(2, f"{report.utilization:.0%} of the matrix limit")
    if "bits_per_byte" in report.validation:
        parts.append(f"validation loss {report.validation['loss']:.3f}")
    for name, label in (
        ("masked_accuracy", "masked tokens"),
        ("next_sentence_accuracy", "next sentences"),
        ("accuracy", "accuracy"),
    ):
        if name in report.validation:
            parts.append(f"{label} {report.validation[name]:.1%}")
    if "exact_match" in report.validation:
        parts.append(f"exact match {report.validation['exact_match']:.1%}")
    if "bleu" in report.validation:
        parts.append(f"BLEU {report.validation['bleu']:.1f}")
    return " · ".join(parts)


def _time(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
