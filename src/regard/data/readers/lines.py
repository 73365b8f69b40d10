"""Read lines of bytes, streamed, from plain or compressed (.gz, .zst) files."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from regard.errors import DataError

COMPRESSIONS = (".gz", ".zst")
MAX_LINE_BYTES = 1_000_000  # of a line that are kept: a file without newlines must not fill memory
BOM = b"\xef\xbb\xbf"
READ_ERRORS = (EOFError, OSError, zlib.error, zstandard.ZstdError)


def read_lines(path: Path, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Stream the lines without newlines (LF or CRLF) and without a BOM.

    A line longer than `limit` is truncated to `limit` + 1 bytes. A missing file is a DataError at once; a damaged
    one is a DataError at the damage, with the number of good lines.
    """
    check_file(path)
    return _lines(path, limit)


def check_file(path: Path) -> None:
    """DataError unless the file exists."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder, wanted a file")
    if not path.exists():
        raise DataError(f"{path}: no such file")


def format_suffix(path: Path) -> str:
    """The suffix of a file's format, without .gz or .zst."""
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path).suffix.lower()


def damaged_file_error(path: Path, read: str, error: BaseException) -> DataError:
    """The error for a file that raised one of READ_ERRORS after so much was `read`."""
    reason = " ".join(str(error).split())
    return DataError(f"{path}: damaged or truncated after {read} ({reason}); get it again")


def _lines(path: Path, limit: int) -> Iterator[bytes]:
    count = 0
    try:
        with open_compressed(path) as file:
            while line := file.readline(limit + 2):
                if not line.endswith(b"\n"):
                    _skip_line(file)
                text = line.removesuffix(b"\n").removesuffix(b"\r")[: limit + 1]
                yield text if count else text.removeprefix(BOM)
                count += 1
    except READ_ERRORS as error:
        raise damaged_file_error(path, f"{count:,} lines", error) from error


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


def open_compressed(path: Path) -> BinaryIO:
    """Open a file, decompressed by its suffix. Reading raises one of READ_ERRORS if it is truncated or damaged."""
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.open(path))
        case ".zst":
            return cast(BinaryIO, io.BufferedReader(_ZstdReader(path), 1 << 16))
        case _:
            return path.open("rb")


class _ZstdReader(io.RawIOBase):
    """A decompressed .zst file. EOFError if it is truncated; the library's own reader would accept it.

    The decompressor gets `FED` bytes at a time: a kilobyte can stand for 32 megabytes.
    """

    FED = 1 << 10

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready, self._at = b"", 0  # decompressed bytes, and how many of them were read

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # any writable buffer
        while self._at == len(self._ready):
            compressed = self._frame.unused_data or self._file.read(self.FED)
            if self._frame.eof:  # a file may hold several frames
                if not compressed:
                    return 0
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            if not compressed:
                raise EOFError("the compressed data has no end")
            self._ready, self._at = self._frame.decompress(compressed), 0
        size = min(len(buffer), len(self._ready) - self._at)
        buffer[:size] = memoryview(self._ready)[self._at : self._at + size]
        self._at += size
        return size
