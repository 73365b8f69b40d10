"""The lines of a text file, plain or packed (.gz, .zst), as bytes and one at a time."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from regard.errors import DataError

PACKINGS = (".gz", ".zst")
LIMIT = 1_000_000  # bytes of a line that are kept: a file without line ends must not fill the memory
BOM = b"\xef\xbb\xbf"
DAMAGES = (EOFError, OSError, zlib.error, zstandard.ZstdError)


def read_lines(path: Path, limit: int = LIMIT) -> Iterator[bytes]:
    """The lines without their ends (LF or CRLF) and without a BOM before the first.

    A line longer than `limit` comes cut to `limit` + 1 bytes. A missing file is a DataError at once, a damaged
    one when the reading gets there, with the number of lines that were good.
    """
    check_file(path)
    return _lines(path, limit)


def check_file(path: Path) -> None:
    """DataError unless there is a file of this name."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder, wanted a file")
    if not path.exists():
        raise DataError(f"{path}: no such file")


def ending(path: Path) -> str:
    """The ending that says how a file is written, below its packing."""
    return (path.with_suffix("") if path.suffix.lower() in PACKINGS else path).suffix.lower()


def damaged(path: Path, read: str, error: BaseException) -> DataError:
    """What to say of a file in which one of DAMAGES came after so much was `read`."""
    reason = " ".join(str(error).split())
    return DataError(f"{path}: damaged or cut off after {read} ({reason}); get it again")


def _lines(path: Path, limit: int) -> Iterator[bytes]:
    count = 0
    try:
        with open_packed(path) as file:
            while line := file.readline(limit + 2):
                if not line.endswith(b"\n"):
                    _skip_rest(file)
                text = line.removesuffix(b"\n").removesuffix(b"\r")[: limit + 1]
                yield text if count else text.removeprefix(BOM)
                count += 1
    except DAMAGES as error:
        raise damaged(path, f"{count:,} lines", error) from error


def _skip_rest(file: BinaryIO) -> None:
    while (rest := file.readline(LIMIT)) and not rest.endswith(b"\n"):
        pass


def open_packed(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked by its ending; one of DAMAGES while reading says that it is cut or damaged."""
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.open(path))
        case ".zst":
            return cast(BinaryIO, io.BufferedReader(_ZstdReader(path), 1 << 16))
        case _:
            return path.open("rb")


class _ZstdReader(io.RawIOBase):
    """A .zst file, unpacked. Cut off, it is an EOFError; the library's own reader would take it for whole."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # any writable buffer
        while not self._ready:
            packed = self._frame.unused_data or self._file.read(1 << 14)
            if self._frame.eof:  # a file may hold several frames
                if not packed:
                    return 0
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            if not packed:
                raise EOFError("the compressed data has no end")
            self._ready = self._frame.decompress(packed)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
