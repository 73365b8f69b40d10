"""Documents from the user's files, streamed: text, JSON lines and Parquet, plain or packed, named or by pattern.

.jsonl      a document a line: {"text": "..."}
.parquet    a document a row of the column "text"
any other   UTF-8 text: the whole file is one document, however large; or many, with blank lines between them
"""

import codecs
import glob
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from regard.data.chunking import PIECE, Piece, between_blank_lines, in_pieces, pieces_of
from regard.data.readers.lines import BOM, DAMAGES, check_file, damaged, ending, open_packed, read_lines
from regard.data.readers.pairs import BadLine, BadLines
from regard.data.readers.parquet import read_column
from regard.errors import DataError

LONGEST = 1 << 28  # bytes of a document that is one line

Row = str | tuple[str, str]  # a document's text, or what is wrong with it: the kind of mistake, what exactly


def read_documents(
    paths: Sequence[Path | str],
    *,
    field: str = "text",
    on_error: Literal["stop", "skip"] = "stop",
    report: BadLines,
    blank_lines: bool = False,
) -> Iterator[Piece]:
    """The documents of the files in pieces; line ends are LF, a BOM is gone, all else is as it was.

    What makes a whole file useless (missing, cut off, not UTF-8), and no text in all of them, is a DataError. So is
    a bad line or row, unless `on_error` is "skip": `report` has it then. Blank lines and empty documents are no text.
    With `blank_lines` these divide a text file into documents.
    """
    files = expand(paths)
    for path in files:
        check_file(path)
    divided = between_blank_lines if blank_lines else in_pieces
    found = (_pieces(path, field, on_error == "skip", report, divided) for path in files)
    return _some_text(files, (piece for pieces in found for piece in pieces))


def expand(paths: Sequence[Path | str]) -> list[Path]:
    """The files meant: a path that does not exist may be a pattern ("books/**/*.txt"), and means what it matches.

    In the order given, those of a pattern sorted. DataError: no paths, a folder, a pattern without a match.
    """
    if not paths:
        raise DataError("got no files, wanted text: for example books/*.txt")
    return [file for path in paths for file in _matches(Path(path))]


def _matches(path: Path) -> list[Path]:
    if path.is_dir():
        raise DataError(f"{path}: is a folder, wanted files; for example {path / '*.txt'}")
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    # Not Path.glob: that one also finds hidden files, and folders only for a "**" at the end.
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
    if not (files := [file for file in found if file.is_file()]):
        raise DataError(f"{path}: matches no file")
    return files


def _some_text(files: list[Path], pieces: Iterator[Piece]) -> Iterator[Piece]:
    empty = True
    for piece in pieces:
        empty = False
        yield piece
    if empty:
        names = ", ".join(map(str, files[:3])) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
        raise DataError(f"{names}: no text at all; give files with text in them")


def _pieces(
    path: Path, field: str, skip: bool, report: BadLines, divided: Callable[[Iterable[str]], Iterator[Piece]]
) -> Iterator[Piece]:
    match ending(path):
        case ".jsonl":
            return _documents(path, _json_rows(path, field), skip, report)
        case ".parquet":
            return _documents(path, enumerate(map(_parquet_row, read_column(path, field)), 1), skip, report)
        case _:
            return divided(_text_of(path))


def _documents(path: Path, rows: Iterable[tuple[int, Row]], skip: bool, report: BadLines) -> Iterator[Piece]:
    for number, row in rows:
        if isinstance(row, str):
            yield from pieces_of(row.replace("\r\n", "\n"))
            continue
        bad = BadLine(path, number, *row)
        if not skip:
            raise DataError(f"{bad}; mend it, or data.on_error=skip to leave such documents out")
        report.add(bad)


def _json_rows(path: Path, field: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(read_lines(path, LONGEST), 1):
        if line.strip():
            yield number, _json_row(line, field)


def _json_row(line: bytes, field: str) -> Row:
    if len(line) > LONGEST:
        return "too long", f"the line has more than {LONGEST:,} bytes"
    try:
        found = json.loads(line.decode())
    except UnicodeDecodeError as error:
        return "invalid UTF-8", f"byte {error.start + 1} of the line is {line[error.start]:#04x}"
    except (ValueError, RecursionError) as error:
        return "bad JSON", str(error)
    if not isinstance(found, dict):
        return "wrong JSON", f'got {_kind(found)}, wanted an object: {{"{field}": "..."}}'
    if field not in found:
        names = ", ".join(found) or "none"
        return "no field", f"no {field!r} among its fields ({names[:80]}); data.field=… names another"
    text = found[field]
    if not isinstance(text, str):
        return "wrong field", f"{field!r} is {_kind(text)}, wanted text"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return "bad character", f"half of a surrogate pair at character {error.start + 1:,} of {field!r}"
    return text


def _kind(value: object) -> str:
    """What JSON calls it."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _parquet_row(value: str | bytes | None) -> Row:
    if value is None:
        return "no text", "the row has none in this column"
    return value if isinstance(value, str) else ("invalid UTF-8", "the row's text is not UTF-8")


def _text_of(path: Path) -> Iterator[str]:
    """The text of a file in chunks."""
    done = 0
    try:
        with open_packed(path) as file:
            for read, text in _decoded(path, file):
                done = read
                yield text
    except DAMAGES as error:
        raise damaged(path, f"{done:,} bytes", error) from error


def _decoded(path: Path, file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Chunks of text, each with the number of bytes read till its end."""
    raw = file.read(PIECE)
    done = len(BOM) if raw.startswith(BOM) else 0
    rest, carried, last = raw[done:], "", not raw
    while True:
        if (nul := rest.find(b"\0")) >= 0:
            raise _no_text(path, done + nul, 0)
        try:
            text, used = codecs.utf_8_decode(rest, "strict", last)
        except UnicodeDecodeError as error:
            raise _no_text(path, done + error.start, rest[error.start]) from None
        text, done = carried + text, done + used
        carried = "\r" if text.endswith("\r") and not last else ""  # its LF may be yet to come
        yield done, text.removesuffix(carried).replace("\r\n", "\n")
        if last:
            return
        raw = file.read(PIECE)
        rest, last = rest[used:] + raw, not raw


def _no_text(path: Path, place: int, byte: int) -> DataError:
    return DataError(
        f"{path}: byte {place:,} (from 0) is {byte:#04x}, so this is no UTF-8 text; "
        "write it as UTF-8 (for example with iconv), or leave the file out"
    )
