"""What is inside a PNG or JPEG file: the parts that make the picture, apart from all that is said about it.

Texts, profiles, thumbnails and further frames are dropped before anything is decoded. So none of them can be a bomb,
none can make the decoder complain, and the one thing wanted of them, the EXIF orientation, is read here.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from regard.errors import PictureError

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
# How the files begin that are most often taken for PNG or JPEG, and what to call them.
OTHERS = {b"GIF8": "a GIF", b"BM": "a BMP", b"II*\0": "a TIFF", b"MM\0*": "a TIFF", b"%PDF": "a PDF", b"<svg": "an SVG"}
CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
EXIF = b"Exif\0\0"
ORIENTATION = 0x0112  # the tag's number
SHORT = 3  # the type of a number with two bytes

# Markers of JPEG: a byte behind 0xFF.
START_OF_SCAN, END, APP1, COMMENT = 0xDA, 0xD9, 0xE1, 0xFE
WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}
# JFIF and Adobe's (0xE0, 0xEE) stay: they say how the colors are meant.
DROPPED = {*range(0xE1, 0xEE), 0xEF, COMMENT}


class Bare(NamedTuple):
    """A file without all that is not its picture, and which way up the picture is (1 to 8, as EXIF counts)."""

    data: bytes
    orientation: int


def kind(data: bytes) -> str:
    """ "PNG" or "JPEG", by the first bytes; PictureError says what else it is."""
    if data.startswith(PNG):
        return "PNG"
    if data.startswith(JPEG):
        return "JPEG"
    if not data:
        raise PictureError("is empty, wanted a PNG or JPEG picture")
    raise PictureError(f"is {_other(data[:64])}, wanted a PNG or JPEG picture")


def bare_png(data: bytes) -> Bare:
    """The first or only picture of a PNG file. PictureError: a chunk that is cut off or damaged."""
    kept: list[bytes] = []
    exif = b""
    for name, chunk in _chunks(data):
        if not kept and name != b"IHDR":
            raise PictureError("is damaged: a PNG begins with its IHDR chunk")
        if name == b"eXIf":
            exif = exif or chunk[8:-4]
        # A color key of 16 bits cannot be compared any more once the colors have 8.
        if name in CHUNKS and not (name == b"tRNS" and kept[0][16:17] == b"\x10"):
            if zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:], "big"):
                raise PictureError(f"is damaged: the checksum of a {name.decode()} chunk differs")
            kept.append(chunk)
    return Bare(PNG + b"".join(kept), _orientation(exif))


def bare_jpeg(data: bytes) -> Bare:
    """The first or only picture of a JPEG file. PictureError: a header that is cut off."""
    kept, exif = [data[:2]], b""
    for marker, segment in _segments(data):
        if marker == APP1 and segment[4:].startswith(EXIF):
            exif = exif or segment[4 + len(EXIF) :]
        if marker not in DROPPED:
            kept.append(segment)
    return Bare(b"".join(kept), _orientation(exif))


def _other(start: bytes) -> str:
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "a WebP"
    if start[4:8] == b"ftyp":
        return "an HEIC, AVIF or video"
    for beginning, name in OTHERS.items():
        if start.lstrip().startswith(beginning):
            return name
    return "text" if all(byte >= 0x20 or byte in b"\t\r\n" for byte in start) else "no picture that is known"


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name of each PNG chunk and all of its bytes, to the last."""
    place, name = len(PNG), b""
    while name != b"IEND":
        name = data[place + 4 : place + 8]
        end = place + 12 + int.from_bytes(data[place : place + 4], "big")
        if len(name) < 4 or end > len(data):
            raise PictureError(f"is cut off after {len(data):,} bytes")
        yield name, data[place:end]
        place = end


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The marker of each JPEG segment and all of its bytes; the last is the scan and whatever follows."""
    place = 2
    while True:
        place = data.find(b"\xff", place)
        while place >= 0 and data[place + 1 : place + 2] == b"\xff":  # any number of them may fill a gap
            place += 1
        if place < 0 or place + 4 > len(data) or data[place + 1] == END:
            raise PictureError(f"is cut off: no picture in its {len(data):,} bytes")
        marker = data[place + 1]
        if marker == START_OF_SCAN:
            yield marker, data[place:]
            return
        length = 0 if marker in WITHOUT_LENGTH else int.from_bytes(data[place + 2 : place + 4], "big")
        yield marker, data[place : place + 2 + length]
        place += 2 + length


def _orientation(exif: bytes) -> int:
    """The orientation that EXIF data tell; 1, upright, where they tell none that can be."""
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
        pass  # cut off: it tells nothing
    return 1
