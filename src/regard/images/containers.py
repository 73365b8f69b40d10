"""Strip PNG and JPEG files to the chunks that make the image, before anything is decoded.

Texts, color profiles, thumbnails and further frames are dropped, so none of them can be a decompression bomb or make
the decoder fail. The EXIF orientation is read here.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from regard.errors import ImageError

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
# First bytes of other formats that users give most often, and their names.
OTHER_FORMATS = {
    b"GIF8": "a GIF",
    b"BM": "a BMP",
    b"II*\0": "a TIFF",
    b"MM\0*": "a TIFF",
    b"%PDF": "a PDF",
    b"<svg": "an SVG",
}
KEPT_CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
EXIF = b"Exif\0\0"
ORIENTATION = 0x0112  # EXIF tag
SHORT = 3  # EXIF type: two bytes

# JPEG markers: the byte after 0xFF.
START_OF_SCAN, END, APP1, COMMENT = 0xDA, 0xD9, 0xE1, 0xFE
WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}
# JFIF and Adobe segments (0xE0, 0xEE) stay: they define the color space.
DROPPED_SEGMENTS = {*range(0xE1, 0xEE), 0xEF, COMMENT}


class StrippedImage(NamedTuple):
    """A file without metadata, and its EXIF orientation (1 to 8)."""

    data: bytes
    orientation: int


def detect_format(data: bytes) -> str:
    """ "PNG" or "JPEG", by the first bytes. ImageError names another format."""
    if data.startswith(PNG):
        return "PNG"
    if data.startswith(JPEG):
        return "JPEG"
    if not data:
        raise ImageError("is empty, wanted a PNG or JPEG image")
    raise ImageError(f"is {_other_format(data[:64])}, wanted a PNG or JPEG image")


def strip_png(data: bytes) -> StrippedImage:
    """The first frame of a PNG file. ImageError: a chunk is truncated or damaged."""
    kept: list[bytes] = []
    exif = b""
    for name, chunk in _chunks(data):
        if not kept and name != b"IHDR":
            raise ImageError("is damaged: a PNG starts with its IHDR chunk")
        if name == b"eXIf":
            exif = exif or chunk[8:-4]
        # A 16-bit color key cannot match after conversion to 8 bits.
        if name in KEPT_CHUNKS and not (name == b"tRNS" and kept[0][16:17] == b"\x10"):
            if zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:], "big"):
                raise ImageError(f"is damaged: the checksum of a {name.decode()} chunk differs")
            kept.append(chunk)
    return StrippedImage(PNG + b"".join(kept), _orientation(exif))


def strip_jpeg(data: bytes) -> StrippedImage:
    """The first frame of a JPEG file. ImageError: a header is truncated."""
    kept, exif = [data[:2]], b""
    for marker, segment in _segments(data):
        if marker == APP1 and segment[4:].startswith(EXIF):
            exif = exif or segment[4 + len(EXIF) :]
        if marker not in DROPPED_SEGMENTS:
            kept.append(segment)
    return StrippedImage(b"".join(kept), _orientation(exif))


def _other_format(start: bytes) -> str:
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "a WebP"
    if start[4:8] == b"ftyp":
        return "an HEIC, AVIF or video"
    for prefix, name in OTHER_FORMATS.items():
        if start.lstrip().startswith(prefix):
            return name
    return "text" if all(byte >= 0x20 or byte in b"\t\r\n" for byte in start) else "of an unknown format"


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the bytes of each PNG chunk, up to IEND."""
    offset, name = len(PNG), b""
    while name != b"IEND":
        name = data[offset + 4 : offset + 8]
        end = offset + 12 + int.from_bytes(data[offset : offset + 4], "big")
        if len(name) < 4 or end > len(data):
            raise ImageError(f"is truncated after {len(data):,} bytes")
        yield name, data[offset:end]
        offset = end


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The marker and the bytes of each JPEG segment; the last is the scan with all that follows."""
    offset = 2
    while True:
        offset = data.find(b"\xff", offset)
        while offset >= 0 and data[offset + 1 : offset + 2] == b"\xff":  # fill bytes
            offset += 1
        if offset < 0 or offset + 4 > len(data) or data[offset + 1] == END:
            raise ImageError(f"is truncated: no image in its {len(data):,} bytes")
        marker = data[offset + 1]
        if marker == START_OF_SCAN:
            yield marker, data[offset:]
            return
        length = 0 if marker in WITHOUT_LENGTH else int.from_bytes(data[offset + 2 : offset + 4], "big")
        yield marker, data[offset : offset + 2 + length]
        offset += 2 + length


def _orientation(exif: bytes) -> int:
    """The orientation of EXIF data; 1 (upright) if they have none that is valid."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", exif, 4)
        (entries,) = struct.unpack_from(f"{order}H", exif, start)
        for entry in range(entries):
            tag, size, _, value = struct.unpack_from(f"{order}HHIH", exif, start + 2 + 12 * entry)
            if tag == ORIENTATION and size == SHORT and 1 <= value <= 8:
                return int(value)
    except struct.error:
        pass  # truncated
    return 1
