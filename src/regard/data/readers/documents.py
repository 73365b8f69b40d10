"""Read documents, streamed: text, JSON lines and Parquet, plain or compressed, by path or glob pattern.

.jsonl      a document a line: {"text": "..."}
.parquet    a document a row of the column "text"
any other   UTF-8 text: the whole file is one document, however large; or many, separated by blank lines
"""

import codecs
import glob
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from regard.data.chunking import CHUNK_CHARACTERS, TextChunk, chunk_stream, chunk_text, split_at_blank_lines
from regard.data.readers.bad_rows import BadRow, BadRows
from regard.data.readers.lines import (
    BOM,
    READ_ERRORS,
    check_file,
    damaged_file_error,
    format_suffix,
    open_compressed,
    read_lines,
)
from regard.data.readers.parquet import read_column
from regard.errors import DataError

MAX_DOCUMENT_BYTES = 1 << 28  # of a document in one line

Row = str | tuple[str, str]  # a document's text, or the reason and detail of a bad row

TEXT_SUFFIXES = (".txt", ".md", ".text")  # of a folder's files


def read_documents(
    paths: Sequence[Path | str],
    *,
    field: str = "text",
    on_error: Literal["stop", "skip"] = "stop",
    report: BadRows,
    blank_lines: bool = False,
) -> Iterator[TextChunk]:
    """Stream the documents in chunks; CRLF becomes LF and a BOM is removed, nothing else changes.

    DataError: a file is missing, truncated or not UTF-8; no file has any text; or a row is bad, unless `on_error` is
    "skip": then it goes to `report`. Blank lines and empty documents are skipped. With `blank_lines` blank lines
    separate the documents of a text file.
    """
    files = expand_patterns(paths)
    for path in files:
        check_file(path)
    split = split_at_blank_lines if blank_lines else chunk_stream
    found = (_chunks(path, field, on_error == "skip", report, split) for path in files)
    return _check_not_empty(files, (chunk for chunks in found for chunk in chunks))


def expand_patterns(paths: Sequence[Path | str]) -> list[Path]:
    """Expand glob patterns ("books/**/*.txt") into files; a path that exists is not a pattern.

    In the order given, the matches of a pattern, and the text files of a folder and below it, sorted. DataError: no
    paths, a folder without text, a pattern without a match.
    """
    if not paths:
        raise DataError("got no files, wanted text: for example books/*.txt")
    return [file for path in paths for file in _matches(Path(path))]


def _matches(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in TEXT_SUFFIXES and file.is_file())
        visible = [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        if not visible:
            raise DataError(
                f"{path}: the folder has no {' or '.join(TEXT_SUFFIXES)} file; name others: {path / '*.html'}"
            )
        return visible
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    # Not Path.glob: it also finds hidden files, and only folders for a "**" at the end.
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
    if not (files := [file for file in found if file.is_file()]):
        raise DataError(f"{path}: matches no file")
    return files


def _check_not_empty(files: list[Path], chunks: Iterator[TextChunk]) -> Iterator[TextChunk]:
    empty = True
    for chunk in chunks:
        empty = empty and not chunk.text.strip()
        yield chunk
    if empty:
        names = ", ".join(map(str, files[:3])) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
        raise DataError(f"{names}: no text at all; give files with text in them")


def _chunks(
    path: Path, field: str, skip: bool, report: BadRows, split: Callable[[Iterable[str]], Iterator[TextChunk]]
) -> Iterator[TextChunk]:
    match format_suffix(path):
        case ".jsonl":
            return _documents(path, _json_rows(path, field), skip, report)
        case ".parquet":
            return _documents(path, enumerate(map(_parquet_row, read_column(path, field)), 1), skip, report)
        case _:
            return split(_read_text(path))


def _documents(path: Path, rows: Iterable[tuple[int, Row]], skip: bool, report: BadRows) -> Iterator[TextChunk]:
    for number, row in rows:
        if isinstance(row, str):
            yield from chunk_text(row.replace("\r\n", "\n"))
            continue
        bad = BadRow(path, number, *row)
        if not skip:
            raise DataError(f"{bad}; fix it, or set data.on_error=skip to skip such documents")
        report.add(bad)


def _json_rows(path: Path, field: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(read_lines(path, MAX_DOCUMENT_BYTES), 1):
        if line.strip():
            yield number, _json_row(line, field)


def _json_row(line: bytes, field: str) -> Row:
    if len(line) > MAX_DOCUMENT_BYTES:
        return "too long", f"the line has more than {MAX_DOCUMENT_BYTES:,} bytes"
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
        return "bad character", f"a lone surrogate at character {error.start + 1:,} of {field!r}"
    return text


def _kind(value: object) -> str:
    """JSON's name for the type of a value."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _parquet_row(value: str | bytes | None) -> Row:
    if value is None:
        return "no text", "the row has no value in this column"
    return value if isinstance(value, str) else ("invalid UTF-8", "the row's text is not UTF-8")


def _read_text(path: Path) -> Iterator[str]:
    """The text of a file, in parts."""
    done = 0
    try:
        with open_compressed(path) as file:
            for read, text in _decoded(path, file):
                done = read
                yield text
    except READ_ERRORS as error:
        raise damaged_file_error(path, f"{done:,} bytes", error) from error


def _decoded(path: Path, file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Parts of text, each with the number of bytes up to its end."""
    raw = file.read(CHUNK_CHARACTERS)
    done = len(BOM) if raw.startswith(BOM) else 0
    rest, carried, last = raw[done:], "", not raw
    while True:
        if (nul := rest.find(b"\0")) >= 0:
            raise _not_utf8(path, done + nul, 0)
        try:
            text, used = codecs.utf_8_decode(rest, "strict", last)
        except UnicodeDecodeError as error:
            raise _not_utf8(path, done + error.start, rest[error.start]) from None
        text, done = carried + text, done + used
        carried = "\r" if text.endswith("\r") and not last else ""  # an LF may follow
        yield done, text.removesuffix(carried).replace("\r\n", "\n")
        if last:
            return
        raw = file.read(CHUNK_CHARACTERS)
        rest, last = rest[used:] + raw, not raw


def _not_utf8(path: Path, offset: int, byte: int) -> DataError:
    return DataError(
        f"{path}: byte {offset:,} (from 0) is {byte:#04x}, so this is not UTF-8 text; "
        "convert it to UTF-8 (for example with iconv), or leave the file out"
    )
