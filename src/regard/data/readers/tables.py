"""Rows of the user's tables, streamed: CSV, TSV, JSON lines and Parquet, plain or packed.

.csv       commas between the columns; a quoted field may hold commas, line ends and doubled quotes
.tsv       tabs between the columns, a line a row; quotes are characters like any other
.jsonl     an object a line
.parquet   as it is

The first row of .csv and .tsv names the columns, unless it is said that there is no header. Blank lines are no rows.
"""

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from regard.data.readers import parquet
from regard.data.readers.lines import LIMIT, check_file, ending, read_lines
from regard.errors import DataError

WANTED = "wanted a .csv, .tsv or .jsonl file (each may be .gz or .zst), or .parquet"
T = TypeVar("T")
ESCAPED = re.compile("[\udc80-\udcff]")  # what Python makes of bytes that are not UTF-8


class Flaw(NamedTuple):
    """What is wrong with a row: the kind of mistake, what exactly."""

    reason: str
    detail: str


Cells = tuple[str | None, ...]  # None: the row has no value there
Row = tuple[int, Cells | Flaw]  # the line it begins in (in Parquet the row), and what stands there
Record = tuple[int, list[str] | Flaw]


def column_names(path: Path, *, header: bool = True, form: str = "") -> list[str]:
    """The names of a table's columns; without a header "1", "2" and so on. Of JSON lines, the first object's.

    `form` is the ending that says how the file is written, where its own does not. DataError: no such file, another
    kind of file, an empty one, one whose first row is bad.
    """
    check_file(path)
    match form or ending(path):
        case ".csv" | ".tsv" as kind:
            first = _first(path, RECORDS[kind](path))
            if ESCAPED.search("".join(first)):
                raise DataError(f"{path}: the first row is not UTF-8; write the file as UTF-8 (for example with iconv)")
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
    """The cells of some columns (counted from 0, as `column_names` has them), row by row.

    A row that cannot be read comes as its flaw. A damaged file is a DataError when the reading gets there.
    """
    names = column_names(path, header=header, form=form)
    match form or ending(path):
        case ".jsonl":
            return _json_rows(path, [names[column] for column in columns])
        case ".parquet":
            return _parquet_rows(path, [names[column] for column in columns])
        case kind:
            return _text_rows(RECORDS[kind](path), columns, len(names), header)


def _first(path: Path, rows: Iterator[tuple[int, T | Flaw]]) -> T:
    line, found = next(rows, (0, Flaw("empty", "the file is empty")))
    if isinstance(found, Flaw):
        where = f"{path}:{line}: {found.reason}" if line else f"{path}"
        raise DataError(f"{where}: {found.detail}; the first row must tell the columns")
    return found


def _text_rows(records: Iterator[Record], columns: Sequence[int], width: int, header: bool) -> Iterator[Row]:
    for count, (line, record) in enumerate(records):
        if count == 0 and header:
            continue
        if isinstance(record, Flaw):
            yield line, record
        elif len(record) != width:
            yield line, Flaw("wrong columns", f"got {len(record)}, wanted {width} as in the first row")
        elif any(ESCAPED.search(record[column]) for column in columns):
            yield line, Flaw("invalid UTF-8", "the row has bytes that are not UTF-8")
        else:
            yield line, tuple(record[column] for column in columns)


def _decoded(path: Path) -> Iterator[str | Flaw]:
    for line in read_lines(path):
        if len(line) > LIMIT:
            yield Flaw("too long", f"the line has more than {LIMIT:,} bytes")
        else:
            yield line.decode("utf-8", "surrogateescape")


def _tsv_records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_decoded(path), 1):
        if isinstance(line, Flaw):
            yield number, line
        elif "\t" in line or line.strip():
            yield number, line.split("\t")


def _csv_records(path: Path) -> Iterator[Record]:
    lines = _Lines(_decoded(path))
    reader = csv.reader(lines, strict=True)  # strict: a stray quote must not swallow the rows behind it
    while True:
        start = lines.next_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except _TooLongError as error:
            yield start, Flaw(*error.args)
        except csv.Error as error:
            lines.give_back()
            yield start, Flaw("bad CSV", f"{error} (a quote that is not closed or not doubled?)")
        else:
            if len(row) > 1 or "".join(row).strip():
                yield start, row


RECORDS: dict[str, Callable[[Path], Iterator[Record]]] = {".csv": _csv_records, ".tsv": _tsv_records}


class _TooLongError(Exception):
    """Reason and detail of a line that was cut."""


class _Lines(Iterator[str]):
    """Lines for the reader of CSV, which takes several for a row; of a bad row all but the first can be given back."""

    def __init__(self, lines: Iterator[str | Flaw]) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        self._taken: list[str] = []
        self._row = 1

    def next_row(self) -> int:
        """The number of the line where the next row begins."""
        self._row += len(self._taken)
        self._taken = []
        return self._row

    def give_back(self) -> None:
        self._again.extendleft(reversed(self._taken[1:]))
        del self._taken[1:]

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        if isinstance(line, Flaw):
            self._taken.append("")
            raise _TooLongError(*line)
        self._taken.append(line)
        return line + "\n"


def _json_lines(path: Path) -> Iterator[tuple[int, str | Flaw]]:
    return ((number, line) for number, line in enumerate(_decoded(path), 1) if isinstance(line, Flaw) or line.strip())


def _json_rows(path: Path, names: list[str]) -> Iterator[Row]:
    for number, line in _json_lines(path):
        found = _object(line)
        yield number, found if isinstance(found, Flaw) else _fields(found, names)


def _object(line: str | Flaw) -> dict[str, object] | Flaw:
    if isinstance(line, Flaw):
        return line
    if ESCAPED.search(line):
        return Flaw("invalid UTF-8", "the line has bytes that are not UTF-8")
    try:
        # Numbers stay as they are written: a label 1.0 is not the label 1.
        found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        return Flaw("bad JSON", str(error))
    return found if isinstance(found, dict) else Flaw("wrong JSON", "wanted an object, {…}")


def _fields(found: dict[str, object], names: list[str]) -> Cells | Flaw:
    cells: list[str | None] = []
    for name in names:
        if name not in found:
            return Flaw("no field", f"no {name!r} among its fields ({', '.join(found)[:80] or 'none'})")
        value = found[name]
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, str | None):
            return Flaw("wrong field", f"{name!r} is {'an array' if isinstance(value, list) else 'an object'}")
        cells.append(value)
    return tuple(cells)


def _parquet_rows(path: Path, names: list[str]) -> Iterator[Row]:
    for number, values in enumerate(parquet.read_columns(path, names), 1):
        if any(isinstance(value, bytes) for value in values):
            yield number, Flaw("invalid UTF-8", "the row has text that is not UTF-8")
        else:
            yield number, tuple(value for value in values if not isinstance(value, bytes))
