"""Read and write word vectors in the formats of word2vec and GloVe, streamed, plain or compressed (.gz, .zst).

    GloVe              the 0.418 0.24968 …      a word a line; words may contain spaces, the last columns are numbers
    word2vec, text     400000 300               count and width, then lines as above (also fastText's .vec)
    word2vec, .bin     400000 300               the same header, then word, space, 32-bit floats

The header is checked against the content, and no memory is allocated by it.
"""

import gzip
import io
import re
from array import array
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from regard.data.readers.lines import (
    MAX_LINE_BYTES,
    READ_ERRORS,
    check_file,
    damaged_file_error,
    format_suffix,
    open_compressed,
    read_lines,
)
from regard.errors import DataError, InputError
from regard.files import atomic_write

MAX_WIDTH = 65_536  # of a vector
MAX_WORD_BYTES = 4_096
BINARY = ".bin"
HEADER = re.compile(rb"(\d{1,18})[ \t]+(\d{1,18})")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)

Row = tuple[str, bytes, array]  # location, word, vector


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and a float32 matrix (V, D) with a row for each; `repeated` counts duplicate rows that were left out."""

    words: list[str]
    matrix: np.ndarray
    repeated: int = 0

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each word in the matrix."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])


def read_vectors(path: Path, *, most: int | None = None, only: Container[str] | None = None) -> WordVectors:
    """Read the vectors of the first `most` words of a file, and of them those in `only`.

    Of duplicate words the first row counts. Any other fault of the file is a DataError with its location.
    """
    if most is not None and most < 1:
        raise InputError(f"the first {most} words of {path}: wanted 1 or more")
    check_file(path)
    rows = _binary_rows(path, most) if format_suffix(path) == BINARY else _text_rows(path, most)
    found = _collect(rows, only)
    if not found.words and only is None:
        raise DataError(f"{path}: no vectors; wanted lines such as: the 0.418 0.24968 -0.41242")
    return found


def write_vectors(path: Path, vectors: WordVectors) -> None:
    """Write the vectors in word2vec's text format, atomically; compressed if the name ends in .gz."""
    if format_suffix(path) == BINARY or path.suffix.lower() == ".zst":
        raise InputError(f"{path}: vectors are written as text; wanted a name such as vectors.txt or vectors.txt.gz")
    with atomic_write(path) as file:
        compressed = path.suffix.lower() == ".gz"
        out = cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)) if compressed else file
        out.write(f"{len(vectors.words)} {vectors.width}\n".encode())
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            _check_word(word)
            out.write(
                f"{word} {' '.join(f'{number:.9g}' for number in row)}\n".encode()
            )  # nine digits restore a float32 exactly
        if compressed:
            out.close()


def _check_word(word: str) -> None:
    raw = word.encode()
    if not raw or raw != raw.strip() or b"\n" in raw or _ends_in_number(raw):
        raise InputError(f"the word {word!r} would be read back differently; leave it out")


def _collect(rows: Iterable[Row], only: Container[str] | None) -> WordVectors:
    words: dict[str, None] = {}
    numbers, width, repeated = array("f"), 1, 0
    for where, raw, row in rows:
        try:
            word = raw.decode()
        except UnicodeDecodeError:
            hint = "; is this word2vec's binary format? Its name ends in .bin" if ":" in where else ""
            raise DataError(f"{where}: the word {raw[:20]!r} is not UTF-8{hint}") from None
        width = len(row)
        if not np.isfinite(np.frombuffer(row, np.float32)).all():
            raise DataError(f"{where}: {word!r} has a number that is not finite in 32 bits; fix or remove the row")
        if word in words:
            repeated += 1
        elif only is None or word in only:
            words[word] = None
            numbers.extend(row)
    return WordVectors(list(words), np.frombuffer(numbers, np.float32).reshape(-1, width).copy(), repeated)


# ------------------------------------------------ text


def _text_rows(path: Path, most: int | None) -> Iterator[Row]:
    lines = read_lines(path)
    first = next(lines, b"")
    header = _header(path, first)
    expected, width = header or (None, _trailing_numbers(first))
    found = 0
    for number, line in enumerate(chain([b"" if header else first], lines), 1):
        if len(line) > MAX_LINE_BYTES:
            raise DataError(
                f"{path}:{number}: the line has more than {MAX_LINE_BYTES:,} bytes; is this a file of vectors?"
            )
        if line.strip():
            found += 1
            where = f"{path}:{number}"
            yield where, *_columns(where, line, width)
        if found == most:
            return
    _check_count(path, expected, found)


def _header(path: Path, line: bytes) -> tuple[int, int] | None:
    """Number and width of the vectors, if the line is a header."""
    match = HEADER.fullmatch(line.strip())
    if match is None:
        return None
    count, width = int(match[1]), int(match[2])
    if not 1 <= width <= MAX_WIDTH:
        raise DataError(f"{path}:1: the header says vectors of {width:,} numbers; wanted 1 to {MAX_WIDTH:,}")
    return count, width


def _trailing_numbers(line: bytes) -> int:
    """The width of the vectors by the first line: its first column is a word, even if it is a number."""
    width = 0
    for column in reversed(line.split()[1:]):
        if not NUMBER.fullmatch(column):
            break
        width += 1
    return max(width, 1)


def _columns(where: str, line: bytes, width: int) -> tuple[bytes, array]:
    word, *columns = line.rsplit(None, width)
    word = word.strip()
    if len(columns) < width or not word:
        found = len(columns) if word else len(columns) - 1
        raise DataError(f"{where}: got {found} columns after the word, wanted {width} numbers")
    if _ends_in_number(word):
        raise DataError(f"{where}: got {len(line.split()) - 1} columns after the word, wanted {width} numbers")
    try:
        if b"_" not in b"".join(columns):  # Python would parse 1_000 as a number
            return word, array("f", map(float, columns))
    except ValueError:
        pass
    wrong = next(column for column in columns if not NUMBER.fullmatch(column))[:20].decode(errors="replace")
    raise DataError(f"{where}: got {wrong!r}, wanted a word and {width} numbers")


def _ends_in_number(word: bytes) -> bool:
    """Whether a word of several parts ends in a number: the line has too many columns."""
    parts = word.split()
    return len(parts) > 1 and NUMBER.fullmatch(parts[-1]) is not None


def _check_count(path: Path, expected: int | None, found: int) -> None:
    if expected is not None and expected != found:
        raise DataError(f"{path}: the header says {expected:,} words and there are {found:,}; truncated? Get it again")


# ------------------------------------------------ binary


def _binary_rows(path: Path, most: int | None) -> Iterator[Row]:
    number = 0
    try:
        with open_compressed(path) as raw, io.BufferedReader(cast(io.RawIOBase, raw), 1 << 16) as file:
            header = _header(path, file.readline(64))
            if header is None:
                raise DataError(f"{path}: does not begin with two numbers; wanted word2vec's binary format")
            expected, width = header
            while most is None or number < most:
                word = _binary_word(path, number + 1, file)
                if not word and not file.peek(1):
                    break
                numbers = file.read(4 * width)
                if len(numbers) < 4 * width or not word:
                    raise DataError(f"{path}: word {number + 1:,} is {'truncated' if word else 'empty'}; get it again")
                number += 1
                yield f"{path}, word {number:,}", word, array("f", np.frombuffer(numbers, "<f4").astype("f").tobytes())
            else:
                return
    except READ_ERRORS as error:
        raise damaged_file_error(path, f"{number:,} words", error) from error
    _check_count(path, expected, number)


def _binary_word(path: Path, number: int, file: BinaryIO) -> bytes:
    """The bytes up to the space; some programs end the previous row with a newline, some do not."""
    word = b""
    while (byte := file.read(1)) not in (b" ", b""):
        word += byte
        if len(word) > MAX_WORD_BYTES:
            raise DataError(
                f"{path}: word {number:,} has more than {MAX_WORD_BYTES:,} bytes; is this word2vec's format?"
            )
    return word.lstrip(b"\n")
