"""Read the header of a GGUF file: its metadata, and where its tensors stand.

Nothing is trusted: every count, length and offset is compared with the size of the file before anything is read by it.
An array that says it has 2**62 entries, or an offset near 2**64, is an error at once. No weight is touched.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import FolderError

MAGIC = b"GGUF"
MAX_DIMENSIONS = 4
DEFAULT_ALIGNMENT = 32
ALIGNMENT_KEY = "general.alignment"
STRING, ARRAY = 8, 9
# Type of a metadata value -> how struct and numpy read it.
FORMS = {0: "B", 1: "b", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
PLAIN_TYPES = {"F32": "<f4", "F16": "<f2"}  # tensors that numpy reads as they are


@dataclass(frozen=True)
class TensorEntry:
    """A tensor in the file."""

    path: Path
    shape: tuple[int, ...]  # the fastest dimension first, as the file has it
    tensor_type: Any  # gguf.GGMLQuantizationType
    row_bytes: int
    offset: int  # in the file

    @property
    def data(self) -> np.ndarray:
        """The numbers, or the bytes of quantized blocks, mapped from the file: the slowest dimension first."""
        form = PLAIN_TYPES.get(self.tensor_type.name)
        last = self.row_bytes if form is None else self.shape[0]
        shape = (*reversed(self.shape[1:]), last)
        if 0 in shape:  # nothing to map
            return np.empty(shape, form or "u1")
        return np.memmap(self.path, form or "u1", "r", self.offset, shape)


@dataclass(frozen=True)
class Header:
    """What a GGUF file says of itself."""

    metadata: dict[str, Any]
    tensors: dict[str, TensorEntry]


def read_header(path: Path) -> Header:
    """The header; FolderError unless every length, count and tensor of it lies inside the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise FolderError(f"{path} is not a GGUF file: it does not begin with the bytes GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                return _Walk(path, content, size).read()
            except (_OutsideError, struct.error) as error:
                raise FolderError(f"{path} is damaged or cut short, copy it again ({error})") from error


class _OutsideError(Exception):
    """A length, count or offset that does not fit into the file, or a value that cannot be."""


class _Walk:
    """A position in the header, moved from field to field."""

    def __init__(self, path: Path, content: mmap.mmap, size: int) -> None:
        self._path, self._content, self._size = path, content, size
        self._at = len(MAGIC)

    def read(self) -> Header:
        version, tensors, keys = self._read("<IQQ")
        if version not in (2, 3):
            raise _OutsideError(f"version {version}, wanted 2 or 3, little-endian")
        self._fits(keys, 13, "keys")  # the shortest: a length, a type, a byte
        self._fits(tensors, 24, "tensors")  # the shortest: a length, a dimension count, a type, an offset
        metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = self._string()
            if key in metadata:
                raise _OutsideError(f"two keys {key[:200]!r}")
            metadata[key] = self._value(*self._read("<I"))
        entries = [self._tensor() for _ in range(tensors)]
        alignment = metadata.get(ALIGNMENT_KEY, DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 1 <= alignment <= 1 << 20:
            raise _OutsideError(f"an alignment of {alignment!r}")
        return Header(metadata, self._placed(entries, -(-self._at // alignment) * alignment))

    def _placed(self, entries: list[tuple[str, TensorEntry]], start: int) -> dict[str, TensorEntry]:
        """The tensors by name, their offsets counted from the beginning of the file."""
        found: dict[str, TensorEntry] = {}
        for name, entry in entries:
            rows = 1
            for length in entry.shape[1:]:
                rows *= length
            end = start + entry.offset + rows * entry.row_bytes
            if end > self._size:
                raise _OutsideError(f"weight {name[:200]!r} ends at byte {end:,} of {self._size:,}")
            if name in found:
                raise _OutsideError(f"two weights {name[:200]!r}")
            found[name] = TensorEntry(self._path, entry.shape, entry.tensor_type, entry.row_bytes, start + entry.offset)
        return found

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._numbers(kind, 1)[0]
        inner, count = self._read("<IQ")
        if inner != STRING:
            return self._numbers(inner, count)
        self._fits(count, 8, "strings")
        return [self._string() for _ in range(count)]

    def _numbers(self, kind: int, count: int) -> list[Any]:
        if kind not in FORMS:
            raise _OutsideError(f"a value of type {kind}, which GGUF does not have here")
        form = np.dtype(FORMS[kind])
        start = self._at
        self._skip(count * form.itemsize)
        if not count:
            return []
        found: list[Any] = np.frombuffer(self._content, form, count, start).tolist()
        return found

    def _tensor(self) -> tuple[str, TensorEntry]:
        """A tensor and its name; its offset is counted from the end of the header."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        name = self._string()
        (dimensions,) = self._read("<I")
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise _OutsideError(f"weight {name[:200]!r} has {dimensions} dimensions, wanted 1 to {MAX_DIMENSIONS}")
        shape = self._read(f"<{dimensions}Q")
        number, offset = self._read("<IQ")
        try:
            kind = GGMLQuantizationType(number)
            block, block_bytes = GGML_QUANT_SIZES[kind]
        except (KeyError, ValueError):
            raise _OutsideError(f"weight {name[:200]!r} is of an unknown type, {number}") from None
        if shape[0] % block:
            raise _OutsideError(f"weight {name[:200]!r} has rows of {shape[0]} numbers, wanted blocks of {block}")
        return name, TensorEntry(self._path, shape, kind, shape[0] // block * block_bytes, offset)

    def _string(self) -> str:
        (length,) = self._read("<Q")
        start = self._at
        self._skip(length)
        try:
            return str(self._content[start : self._at], "utf-8")
        except UnicodeDecodeError as error:
            raise _OutsideError(f"a string at byte {start:,} is not UTF-8") from error

    def _read(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._content, self._at)
        self._at += struct.calcsize(form)
        return found

    def _skip(self, length: int) -> None:
        if length > self._size - self._at:
            raise _OutsideError(f"a length of {length:,} at byte {self._at:,} of {self._size:,}")
        self._at += length

    def _fits(self, count: int, least: int, what: str) -> None:
        if count * least > self._size - self._at:
            raise _OutsideError(f"{count:,} {what} do not fit into {self._size:,} bytes")
