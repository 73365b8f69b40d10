"""Read sentence pairs: streamed and checked line by line; bad lines are reported."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

from regard.data.readers.bad_rows import CONTROL_CHARACTER, BadRow, BadRows, OnError
from regard.data.readers.lines import MAX_LINE_BYTES, format_suffix, read_lines
from regard.data.readers.pair_columns import PairColumns, look_at_columns
from regard.errors import DataError

WANTED = "wanted one .tsv or .jsonl file, or two text files that match line by line (each may be .gz or .zst)"
MAX_WORD_CHARACTERS = 20  # bounds a sentence in a script without spaces


def read_pairs(paths: Sequence[Path], *, on_error: OnError, report: BadRows, longest: int) -> Iterator[tuple[str, str]]:
    """Stream the (source, target) pairs of one .tsv or .jsonl file or of two parallel files.

    DataError: a file is missing, truncated or has no pair, or parallel files differ in length; what needs no reading
    is raised at once. A bad line is a DataError too, unless `on_error` is "skip": then it goes to `report`.
    """
    paths = [Path(path) for path in paths]
    split = _splitter(paths)
    rows = _rows(paths, [read_lines(path) for path in paths])
    return _good_pairs(paths, rows, split, on_error == "skip", report, longest)


class _BadLineError(Exception):
    """Reason, detail and side (0 source, 1 target) of a bad line; its number is not known here."""


def _good_pairs(
    paths: list[Path],
    rows: Iterator[tuple[bytes, ...]],
    split: Callable[..., tuple[str, str]],
    skip: bool,
    report: BadRows,
    longest: int,
) -> Iterator[tuple[str, str]]:
    good = number = 0
    first: BadRow | None = None
    columns = look_at_columns(paths[0]) if split is _columns else PairColumns()
    if split is _columns:
        split = partial(_columns, count=columns.count)
        report.notes += columns.notes()
    for number, lines in enumerate(rows, 1):
        if number == 1 and columns.header:
            continue
        try:
            source, target = split(*(_text(line, side) for side, line in enumerate(lines)))
            pair = _sentence(source, 0, longest), _sentence(target, 1, longest)
        except _BadLineError as bad:
            reason, detail, side = bad.args
            line = BadRow(paths[side % len(paths)], number, reason, detail)
            if not skip:
                raise DataError(f"{line}; fix it, or set data.on_error=skip to skip such lines") from None
            first = first or line
            report.add(line)
        else:
            good += 1
            yield pair
    if not good:
        names = " and ".join(str(path) for path in paths)
        found = f"the first of {number:,} bad lines: {first}" if number else "the file is empty"
        raise DataError(f"{names}: no sentence pair; {found}")


def _splitter(paths: list[Path]) -> Callable[..., tuple[str, str]]:
    """The function that makes (source, target) of the lines with one number, by the files' suffixes."""
    endings = [format_suffix(path) for path in paths]
    known = {".tsv": _columns, ".jsonl": _fields}
    if len(paths) == 2 and not known.keys() & endings:
        return _parallel
    if len(paths) != 1:
        raise DataError(f"got {len(paths)} files ({', '.join(path.name for path in paths)}), {WANTED}")
    if endings[0] not in known:
        raise DataError(f"{paths[0]}: got the ending {endings[0]!r}, {WANTED}")
    return known[endings[0]]


def _rows(paths: list[Path], streams: list[Iterator[bytes]]) -> Iterator[tuple[bytes, ...]]:
    """The lines with the same number, one from each file."""
    for number, lines in enumerate(zip_longest(*streams)):
        if None in lines:
            rest = [sum(1 for _ in stream) for stream in streams]
            one, other = (number + (line is not None) + more for line, more in zip(lines, rest, strict=True))
            raise DataError(
                f"{paths[0]} has {one:,} lines and {paths[1]} {other:,}, wanted the same sentences line by line"
            )
        yield lines


def _text(line: bytes, side: int) -> str:
    if len(line) > MAX_LINE_BYTES:
        raise _BadLineError("too long", f"the line has more than {MAX_LINE_BYTES:,} bytes", side)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _BadLineError(
            "invalid UTF-8", f"byte {error.start + 1} of the line is {line[error.start]:#x}", side
        ) from None


def _columns(line: str, count: int | None = None) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) < 2:
        raise _BadLineError("wrong columns", "got no tab, wanted source<tab>target", 0)
    if count is not None and len(columns) != count:
        detail = f"got {len(columns)}, the file has {count}: a tab inside a sentence?"
        raise _BadLineError("wrong columns", detail, 0)
    return columns[0], columns[1]


def _fields(line: str) -> tuple[str, str]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _BadLineError("bad JSON", str(error), 0) from None
    sides = (found.get("source"), found.get("target")) if isinstance(found, dict) else (None, None)
    if not (isinstance(sides[0], str) and isinstance(sides[1], str)):
        raise _BadLineError("wrong fields", 'wanted {"source": "...", "target": "..."}', 0)
    return sides[0], sides[1]


def _parallel(source: str, target: str) -> tuple[str, str]:
    return source, target


def _sentence(text: str, side: int, longest: int) -> str:
    """The sentence without surrounding white space."""
    name = ("source", "target")[side]
    text = text.strip()
    if not text:
        raise _BadLineError("empty side", f"the {name} is empty", side)
    if found := CONTROL_CHARACTER.search(text):
        raise _BadLineError("control character", f"U+{ord(found[0]):04X} in the {name}", side)
    if len(text) > longest and (words := len(text.split())) > longest:
        raise _BadLineError("too long", f"the {name} has {words:,} words, at most {longest:,} wanted", side)
    if len(text) > longest * MAX_WORD_CHARACTERS:
        limit = f"at most {longest * MAX_WORD_CHARACTERS:,} wanted"
        raise _BadLineError("too long", f"the {name} has {len(text):,} characters, {limit}", side)
    return text
