"""Labeled texts and pairs of texts from the user's tables: streamed, checked, bad rows named and counted."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from regard.data.readers.columns import SAY, Chosen, Columns, choose_columns
from regard.data.readers.pairs import CONTROL, BadLine, BadLines
from regard.data.readers.tables import Cells, Flaw, Row, read_rows
from regard.errors import DataError

__all__ = ["Chosen", "Columns", "Labeled", "choose_columns", "good_rows", "labeled_of", "read_labeled"]

OnError = Literal["stop", "skip"]
UNREADABLE = re.compile(
    "[\x00\ud800-\udfff]"
)  # no text has these; line ends and the like are a tokenizer's white space


@dataclass(frozen=True)
class Labeled:
    """A text or a pair of texts, with its label as it is written; no label where the file has none.

    Where it stands is no part of what it is: rows of two files may be equal.
    """

    text: str
    second: str | None = None
    label: str | None = None
    file: Path | None = field(default=None, compare=False)
    line: int = field(default=0, compare=False)  # where it begins, from 1; in Parquet the row

    @property
    def place(self) -> str:
        """ "reviews.csv:12" for whoever has to mend it; nothing where it is of no file."""
        return "" if self.file is None else f"{self.file}:{self.line}"


def read_labeled(
    paths: Sequence[Path], *, columns: Columns, on_error: OnError, report: BadLines, labels_needed: bool = True
) -> Iterator[Labeled]:
    """The labeled texts of .csv, .tsv, .jsonl and .parquet files, one at a time; pairs where there is a second column.

    What makes a whole file useless (missing, cut off, columns not found, no good row at all), and files of which only
    some have pairs or labels, is a DataError; what the first rows tell, at once. So is a bad row, unless `on_error` is
    "skip": `report` has it then. Without `labels_needed` a row may lack its label, and a file the column.
    """
    paths = [Path(path) for path in paths]
    chosen = [choose_columns(path, columns, labels_needed=labels_needed) for path in paths]
    _check_one_kind(paths, chosen)
    return (
        labeled
        for path, one in zip(paths, chosen, strict=True)
        for labeled in _labeled_of_file(path, one, on_error, report, labels_needed)
    )


def _labeled_of_file(
    path: Path, chosen: Chosen, on_error: OnError, report: BadLines, labels_needed: bool
) -> Iterator[Labeled]:
    rows = read_rows(path, chosen.places, header=chosen.header)
    pair, label = chosen.second is not None, chosen.label is not None
    make = partial(labeled_of, pair=pair, label=label, labels_needed=labels_needed)
    return good_rows(path, rows, make, on_error, report)


def good_rows(
    path: Path, rows: Iterator[Row], make: Callable[[Cells], Labeled | Flaw], on_error: OnError, report: BadLines
) -> Iterator[Labeled]:
    """What `make` makes of the rows; a flaw stops the reading or goes to the report. No good row at all: DataError."""
    good = bad = 0
    for line, cells in rows:
        found = cells if isinstance(cells, Flaw) else make(cells)
        if isinstance(found, Labeled):
            good += 1
            yield replace(found, file=path, line=line)
            continue
        flaw = BadLine(path, line, *found)
        if on_error == "stop":
            raise DataError(f"{flaw}; mend it, or data.on_error=skip to leave such lines out")
        bad += 1
        report.add(flaw)
    if not good:
        raise DataError(f"{path}: no labeled text; " + (f"all {bad:,} rows are bad" if bad else "it has no rows"))


def labeled_of(cells: Cells, *, pair: bool, label: bool, labels_needed: bool) -> Labeled | Flaw:
    """Of the cells (the text, the second of a pair, the label) without white space around them, or what is wrong."""
    text, *rest = ((cell or "").strip() for cell in cells)
    second = rest[0] if pair else None
    name = rest[-1] if label else None
    for what, found in (("text", text), ("second text", second)):
        if found == "":
            return Flaw("empty text", f"the {what} is empty")
        if found and (sign := UNREADABLE.search(found)):
            return Flaw("bad character", f"U+{ord(sign[0]):04X} in the {what}")
    if name == "" and labels_needed:
        return Flaw("empty label", "the label is empty")
    if name and (sign := CONTROL.search(name)):
        return Flaw("bad character", f"U+{ord(sign[0]):04X} in the label")
    return Labeled(text, second, name or None)


def _check_one_kind(paths: list[Path], chosen: list[Chosen]) -> None:
    for what in ("second", "label"):
        having = [getattr(one, what) is not None for one in chosen]
        if any(having) and not all(having):
            there, lacking = paths[having.index(True)], paths[having.index(False)]
            raise DataError(f"{there} has a column of the {what} and {lacking} has none, wanted one kind; {SAY}")
