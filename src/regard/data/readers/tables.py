"""Read rows of tables, streamed: CSV, TSV, JSON lines and Parquet, plain or compressed.

.csv       columns separated by commas; a quoted field may contain commas, newlines and doubled quotes
.tsv       columns separated by tabs, one row a line; quotes are ordinary characters
.jsonl     one object a line
.parquet   read with pyarrow

The first row of .csv and .tsv is the header, unless `header` is False. Blank lines are skipped.
"""

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from regard.data.readers import parquet
from regard.data.readers.bad_rows import RowProblem
from regard.data.readers.lines import MAX_LINE_BYTES, check_file, format_suffix, read_lines
from regard.errors import DataError

MAX_COLUMNS = 10_000
MAX_ROW_LINES = 1_000  # of one row of a CSV file: a quoted field may contain newlines
MAX_RUNAWAYS = 100
WANTED = "wanted a .csv, .tsv or .jsonl file (each may be .gz or .zst), or .parquet"
T = TypeVar("T")
NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, decoded with surrogateescape


Cells = tuple[str | None, ...]  # None: no value
Row = tuple[int, Cells | RowProblem]  # its first line (in Parquet the row), and its cells
Record = tuple[int, list[str] | RowProblem]


def column_names(path: Path, *, header: bool = True, form: str = "") -> list[str]:
    """The column names of a table; without a header "1", "2" and so on. For JSON lines those of the first object.

    `form` is the suffix of the format if the file's own does not say it. DataError: the file is missing, empty or of
    another format, or its first row is bad.
    """
    check_file(path)
    match form or format_suffix(path):
        case ".csv" | ".tsv" as kind:
            first = _first(path, RECORDS[kind](path))
            if len(first) > MAX_COLUMNS:
                raise DataError(f"{path}: the first row has {len(first):,} columns, at most {MAX_COLUMNS:,} are read")
            if NOT_UTF8.search("".join(first)):
                raise DataError(f"{path}: the first row is not UTF-8; convert it to UTF-8 (for example with iconv)")
            return [name.strip() for name in first] if header else [str(i + 1) for i in range(len(first))]
        case ".jsonl" if header:
            return list(_first(path, ((line, _object(raw)) for line, raw in _json_lines(path))))
        case ".parquet" if header:
            return parquet.column_names(path)
        case ".jsonl" | ".parquet":
            raise DataError(f"{path}: its columns have names, got numbers; give the columns by name")
        case other:
            raise DataError(f"{path}: got the ending {other!r}, {WANTED}")


def read_rows(path: Path, columns: Sequence[int], *, header: bool = True, form: str = "") -> Iterator[Row]:
    """Stream the cells of some columns (indices into `column_names`), row by row.

    A row that cannot be read is a RowProblem. A damaged file is a DataError at the damage.
    """
    names = column_names(path, header=header, form=form)
    match form or format_suffix(path):
        case ".jsonl":
            return _json_rows(path, [names[column] for column in columns])
        case ".parquet":
            return _parquet_rows(path, [names[column] for column in columns])
        case kind:
            return _text_rows(RECORDS[kind](path), columns, len(names), header)


def _first(path: Path, rows: Iterator[tuple[int, T | RowProblem]]) -> T:
    line, found = next(rows, (0, RowProblem("empty", "the file is empty")))
    if isinstance(found, RowProblem):
        where = f"{path}:{line}: {found.reason}" if line else f"{path}"
        raise DataError(f"{where}: {found.detail}; the first row must name the columns")
    return found


def _text_rows(records: Iterator[Record], columns: Sequence[int], width: int, header: bool) -> Iterator[Row]:
    for count, (line, record) in enumerate(records):
        if count == 0 and header:
            continue
        if isinstance(record, RowProblem):
            yield line, record
        elif len(record) != width:
            yield line, RowProblem("wrong columns", f"got {len(record)}, wanted {width} as in the first row")
        elif any(NOT_UTF8.search(record[column]) for column in columns):
            yield line, RowProblem("invalid UTF-8", "the row has bytes that are not UTF-8")
        else:
            yield line, tuple(record[column] for column in columns)


def _decoded(path: Path) -> Iterator[str | RowProblem]:
    for line in read_lines(path):
        if len(line) > MAX_LINE_BYTES:
            yield RowProblem("too long", f"the line has more than {MAX_LINE_BYTES:,} bytes")
        else:
            yield line.decode("utf-8", "surrogateescape")


def _tsv_records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_decoded(path), 1):
        if isinstance(line, RowProblem):
            yield number, line
        elif "\t" in line or line.strip():
            yield number, line.split("\t")


def _csv_records(path: Path) -> Iterator[Record]:
    lines = _Lines(_decoded(path))
    reader = csv.reader(lines, strict=True)  # strict: a stray quote must not swallow the rows after it
    while True:
        start = lines.next_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except _TooLongError as error:
            yield start, RowProblem(*error.args)
        except csv.Error as error:
            lines.give_back()
            yield start, RowProblem("bad CSV", f"{error} (a quote that is not closed or not doubled?)")
        else:
            lines.runaways = 0
            if len(row) > 1 or "".join(row).strip():
                yield start, row


RECORDS: dict[str, Callable[[Path], Iterator[Record]]] = {".csv": _csv_records, ".tsv": _tsv_records}


class _TooLongError(Exception):
    """Reason and detail of a line that was truncated."""


class _Lines(Iterator[str]):
    """Lines for the CSV reader, which may take several a row; after a bad row all but its first are read again.

    A quote that is never closed makes a row of all lines that follow, and the same for the next row: a row may have
    MAX_ROW_LINES, and after MAX_RUNAWAYS such rows their lines are not read again, so that the time stays linear.
    """

    def __init__(self, lines: Iterator[str | RowProblem]) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        self._taken: list[str] = []
        self._row = 1
        self.runaways = 0  # bad rows of several lines, one after another

    def next_row(self) -> int:
        """The number of the next row's first line."""
        self._row += len(self._taken)
        self._taken = []
        return self._row

    def give_back(self) -> None:
        """After a bad row: read its lines again, without the first."""
        self.runaways += len(self._taken) > 1
        if self.runaways > MAX_RUNAWAYS:
            return
        self._again.extendleft(reversed(self._taken[1:]))
        del self._taken[1:]

    def __next__(self) -> str:
        if len(self._taken) == MAX_ROW_LINES:
            raise csv.Error(f"a row of more than {MAX_ROW_LINES:,} lines")
        line = self._again.popleft() if self._again else next(self._lines)
        if isinstance(line, RowProblem):
            self._taken.append("")
            raise _TooLongError(*line)
        self._taken.append(line)
        return line + "\n"


def _json_lines(path: Path) -> Iterator[tuple[int, str | RowProblem]]:
    return (
        (number, line) for number, line in enumerate(_decoded(path), 1) if isinstance(line, RowProblem) or line.strip()
    )


def _json_rows(path: Path, names: list[str]) -> Iterator[Row]:
    for number, line in _json_lines(path):
        found = _object(line)
        yield number, found if isinstance(found, RowProblem) else _fields(found, names)


def _object(line: str | RowProblem) -> dict[str, object] | RowProblem:
    if isinstance(line, RowProblem):
        return line
    if NOT_UTF8.search(line):
        return RowProblem("invalid UTF-8", "the line has bytes that are not UTF-8")
    try:
        # Keep numbers as written: label 1.0 is not label 1.
        found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        return RowProblem("bad JSON", str(error))
    return found if isinstance(found, dict) else RowProblem("wrong JSON", "wanted an object, {…}")


def _fields(found: dict[str, object], names: list[str]) -> Cells | RowProblem:
    cells: list[str | None] = []
    for name in names:
        if name not in found:
            return RowProblem("no field", f"no {name!r} among its fields ({', '.join(found)[:80] or 'none'})")
        value = found[name]
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, str | None):
            return RowProblem("wrong field", f"{name!r} is {'an array' if isinstance(value, list) else 'an object'}")
        cells.append(value)
    return tuple(cells)


def _parquet_rows(path: Path, names: list[str]) -> Iterator[Row]:
    for number, values in enumerate(parquet.read_columns(path, names), 1):
        if any(isinstance(value, bytes) for value in values):
            yield number, RowProblem("invalid UTF-8", "the row has text that is not UTF-8")
        else:
            yield number, tuple(value for value in values if not isinstance(value, bytes))
