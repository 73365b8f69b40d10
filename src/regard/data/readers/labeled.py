"""Read labeled texts and pairs of texts from tables: streamed and checked; bad rows are reported."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from regard.data.readers.bad_rows import CONTROL_CHARACTER, BadRow, BadRows, OnError, RowProblem
from regard.data.readers.columns import HOW_TO_NAME, ChosenColumns, Columns, choose_columns
from regard.data.readers.tables import Cells, Row, read_rows
from regard.errors import DataError

__all__ = ["ChosenColumns", "Columns", "LabeledText", "choose_columns", "good_rows", "parse_labeled", "read_labeled"]

NOT_TEXT = re.compile("[\x00\ud800-\udfff]")  # never text; newlines and the like are white space to a tokenizer


@dataclass(frozen=True)
class LabeledText:
    """A text or a pair of texts with its label, as written in the file; None without one.

    File and line do not count in comparisons: rows of two files may be equal.
    """

    text: str
    second: str | None = None
    label: str | None = None
    file: Path | None = field(default=None, compare=False)
    line: int = field(default=0, compare=False)  # its first line, from 1; in Parquet the row

    @property
    def location(self) -> str:
        """ "reviews.csv:12", for error messages; empty for a row that is not from a file."""
        return "" if self.file is None else f"{self.file}:{self.line}"


def read_labeled(
    paths: Sequence[Path], *, columns: Columns, on_error: OnError, report: BadRows, labels_needed: bool = True
) -> Iterator[LabeledText]:
    """Stream the labeled texts of .csv, .tsv, .jsonl and .parquet files; pairs if there is a second column.

    DataError: a file is missing, truncated, lacks columns or has no good row; or only some of the files have pairs or
    labels. Errors that the first rows show are raised at once. A bad row is a DataError too, unless `on_error` is
    "skip": then it goes to `report`. Without `labels_needed` rows may lack a label, and files the column.
    """
    paths = [Path(path) for path in paths]
    chosen = [choose_columns(path, columns, labels_needed=labels_needed) for path in paths]
    _check_same_columns(paths, chosen)
    return (
        labeled
        for path, one in zip(paths, chosen, strict=True)
        for labeled in _read_file(path, one, on_error, report, labels_needed)
    )


def _read_file(
    path: Path, chosen: ChosenColumns, on_error: OnError, report: BadRows, labels_needed: bool
) -> Iterator[LabeledText]:
    rows = read_rows(path, chosen.indices, header=chosen.header)
    pair, label = chosen.second is not None, chosen.label is not None
    make = partial(parse_labeled, pair=pair, label=label, labels_needed=labels_needed)
    return good_rows(path, rows, make, on_error, report)


def good_rows(
    path: Path,
    rows: Iterator[Row],
    make: Callable[[Cells], LabeledText | RowProblem],
    on_error: OnError,
    report: BadRows,
) -> Iterator[LabeledText]:
    """Parse rows with `make`; a bad row is an error or goes to the report. DataError: no good row."""
    good = bad = 0
    for line, cells in rows:
        found = cells if isinstance(cells, RowProblem) else make(cells)
        if isinstance(found, LabeledText):
            good += 1
            yield replace(found, file=path, line=line)
            continue
        row = BadRow(path, line, *found)
        if on_error == "stop":
            raise DataError(f"{row}; fix it, or set data.on_error=skip to skip such lines")
        bad += 1
        report.add(row)
    if not good:
        raise DataError(f"{path}: no labeled text; " + (f"all {bad:,} rows are bad" if bad else "it has no rows"))


def parse_labeled(cells: Cells, *, pair: bool, label: bool, labels_needed: bool) -> LabeledText | RowProblem:
    """Parse the cells: text, second text of a pair, label; surrounding white space is removed."""
    text, *rest = ((cell or "").strip() for cell in cells)
    second = rest[0] if pair else None
    name = rest[-1] if label else None
    for what, found in (("text", text), ("second text", second)):
        if found == "":
            return RowProblem("empty text", f"the {what} is empty")
        if found and (sign := NOT_TEXT.search(found)):
            return RowProblem("bad character", f"U+{ord(sign[0]):04X} in the {what}")
    if name == "" and labels_needed:
        return RowProblem("empty label", "the label is empty")
    if name and (sign := CONTROL_CHARACTER.search(name)):
        return RowProblem("bad character", f"U+{ord(sign[0]):04X} in the label")
    return LabeledText(text, second, name or None)


def _check_same_columns(paths: list[Path], chosen: list[ChosenColumns]) -> None:
    for what in ("second", "label"):
        having = [getattr(one, what) is not None for one in chosen]
        if any(having) and not all(having):
            there, lacking = paths[having.index(True)], paths[having.index(False)]
            raise DataError(
                f"{there} has a {what} column and {lacking} has none, wanted the same columns; {HOW_TO_NAME}"
            )
