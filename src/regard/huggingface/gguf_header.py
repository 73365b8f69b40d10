"""Check the header of a GGUF file before anything is read by it: every count, length and offset fits into the file.

The reader library trusts the file: an array that says it has 2**62 entries keeps it busy for ever, and an offset near
2**64 wraps around. This walk reads each length once and touches no weight.
"""

import mmap
import struct
from pathlib import Path

from regard.errors import FolderError

MAGIC = b"GGUF"
MAX_DIMENSIONS = 4
DEFAULT_ALIGNMENT = 32
ALIGNMENT_KEY = b"general.alignment"
STRING, ARRAY = 8, 9
# Type of a metadata value -> its size in bytes.
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def check_header(path: Path) -> None:
    """FolderError unless every length, count and tensor of the header lies inside the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise FolderError(f"{path} is not a GGUF file: it does not begin with the bytes GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                _Walk(content, size).check()
            except (_OutsideError, struct.error) as error:
                raise FolderError(f"{path} is damaged or cut short, copy it again ({error})") from error


class _OutsideError(Exception):
    """A length, count or offset that does not fit into the file."""


class _Walk:
    """A position in the header, moved from field to field."""

    def __init__(self, content: mmap.mmap, size: int) -> None:
        self._content, self._size = content, size
        self._at = len(MAGIC)
        self._alignment = DEFAULT_ALIGNMENT

    def check(self) -> None:
        version, tensors, keys = self._read("<IQQ")
        if version not in (2, 3):
            raise _OutsideError(f"version {version}, wanted 2 or 3, little-endian")
        self._fits(keys, 13, "keys")  # the shortest: a length, a type, a byte
        self._fits(tensors, 24, "tensors")  # the shortest: a length, a dimension count, a type, an offset
        for _ in range(keys):
            self._check_key()
        ends = [self._check_tensor() for _ in range(tensors)]
        start = -(-self._at // self._alignment) * self._alignment
        for name, end in ends:
            if start + end > self._size:
                raise _OutsideError(f"weight {name!r} ends at byte {start + end:,} of {self._size:,}")

    def _check_key(self) -> None:
        key = self._string()
        (kind,) = self._read("<I")
        if key == ALIGNMENT_KEY and kind == 4:
            (self._alignment,) = struct.unpack_from("<I", self._content, self._at)
            if not 1 <= self._alignment <= 1 << 20:
                raise _OutsideError(f"an alignment of {self._alignment}")
        self._check_value(kind)

    def _check_value(self, kind: int) -> None:
        if kind == STRING:
            self._string()
        elif kind == ARRAY:
            inner, count = self._read("<IQ")
            if inner == STRING:
                self._fits(count, 8, "strings")
                for _ in range(count):
                    self._string()
            else:
                self._skip(count * self._value_size(inner))
        else:
            self._skip(self._value_size(kind))

    def _check_tensor(self) -> tuple[bytes, int]:
        """The name of a tensor, and the offset of its end, counted after the header."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        name = self._string()
        (dimensions,) = self._read("<I")
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise _OutsideError(f"weight {name!r} has {dimensions} dimensions, wanted 1 to {MAX_DIMENSIONS}")
        shape = self._read(f"<{dimensions}Q")
        kind, offset = self._read("<IQ")
        try:
            block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (KeyError, ValueError):
            raise _OutsideError(f"weight {name!r} is of an unknown type, {kind}") from None
        count = 1
        for length in shape:
            count *= length
        if shape[0] % block:
            raise _OutsideError(f"weight {name!r} has rows of {shape[0]} numbers, wanted blocks of {block}")
        return name, offset + count // block * block_bytes

    def _string(self) -> bytes:
        (length,) = self._read("<Q")
        start = self._at
        self._skip(length)
        return self._content[start : min(self._at, start + 200)]

    def _value_size(self, kind: int) -> int:
        if kind not in SIZES:
            raise _OutsideError(f"a value of type {kind}, which GGUF does not have here")
        return SIZES[kind]

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
