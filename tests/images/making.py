"""Pictures to test with, odd ones above all, as the bytes of a file."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def gradient(width: int = 12, height: int = 8) -> Image.Image:
    """A picture in which no two pixels are alike: red grows to the right, green downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], -1).astype(np.uint8))


def corners(width: int = 32, height: int = 16) -> Image.Image:
    """White, with a red quarter above left and a blue one below right: tells every turn from every other."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    pixels[: height // 2, : width // 2] = (255, 0, 0)
    pixels[height // 2 :, width // 2 :] = (0, 0, 255)
    return Image.fromarray(pixels)


def saved(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def header(width: int, height: int, depth: int = 8, color: int = 2) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))


def png(head: bytes, *chunks: bytes, rows: bytes) -> bytes:
    """A PNG of a header, further chunks and its rows, each with a filter byte before it."""
    return SIGNATURE + head + b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def with_chunk(data: bytes, name: bytes, content: bytes) -> bytes:
    """A PNG with one more chunk, behind its header."""
    return data[:33] + chunk(name, content) + data[33:]


def exif(orientation: int, order: str = ">") -> bytes:
    """EXIF data that say nothing but the orientation."""
    start = b"II*\0" if order == "<" else b"MM\0*"
    return start + struct.pack(f"{order}IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def huge() -> bytes:
    """The header of a PNG of 50,000 × 50,000 pixels, and hardly more."""
    return png(header(50_000, 50_000), rows=b"\0" * 64)


def sixteen_bit_gray() -> bytes:
    """Four grays of 16 bits in a row."""
    return png(header(4, 1, 16, 0), rows=b"\0" + struct.pack(">4H", 0, 0x1234, 0x80FF, 0xFFFF))


def sixteen_bit_color() -> bytes:
    return png(header(2, 1, 16, 2), rows=b"\0" + struct.pack(">6H", 0, 0x1234, 0xFFFF, 0x80FF, 0, 0x00FF))


def palette() -> bytes:
    """Red solid, green half seen, blue not at all, by a palette with alpha."""
    colors = chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]))
    return png(header(3, 1, 8, 3), colors, chunk(b"tRNS", bytes([255, 128, 0])), rows=b"\0\0\1\2")


def text_bomb(name: bytes = b"zTXt", size: int = 20_000_000) -> bytes:
    """A PNG with a text of 20 megabytes of spaces, packed small."""
    return with_chunk(saved(gradient()), name, b"Comment\0\0" + zlib.compress(b" " * size))


def animated() -> bytes:
    """Two frames: red, then blue."""
    red, blue = (Image.new("RGB", (4, 4), color) for color in ("red", "blue"))
    return saved(red, save_all=True, append_images=[blue])


def odd_pictures() -> dict[str, bytes]:
    """Files that are pictures, in every way of writing that is read."""
    picture = gradient()
    clear = picture.convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    return {
        "rgb.png": saved(picture),
        "rgba.png": saved(clear),
        "gray.png": saved(picture.convert("L")),
        "gray-alpha.png": saved(clear.convert("LA")),
        "one-bit.png": saved(picture.convert("1")),
        "palette.png": saved(picture.quantize(8)),
        "palette-alpha.png": palette(),
        "color-key.png": saved(picture, transparency=(0, 0, 255)),
        "gray-key.png": saved(picture.convert("L"), transparency=0),
        "16-bit-gray.png": sixteen_bit_gray(),
        "16-bit-color.png": sixteen_bit_color(),
        "text-bomb.png": text_bomb(),
        "profile-bomb.png": text_bomb(b"iCCP"),
        "bad-animation.png": with_chunk(saved(picture), b"acTL", bytes(8)),
        "animated.png": animated(),
        "bad-exif.png": with_chunk(saved(picture), b"eXIf", exif(6)[:11]),
        "rgb.jpg": saved(picture, "JPEG"),
        "gray.jpg": saved(picture.convert("L"), "JPEG"),
        "cmyk.jpg": saved(picture.convert("CMYK"), "JPEG"),
        "progressive.jpg": saved(picture, "JPEG", progressive=True),
        "turned.jpg": saved(picture, "JPEG", exif=exif(6)),
        "several.jpg": saved(picture, "MPO", save_all=True, append_images=[picture]),
        "jpeg-named.png": saved(picture, "JPEG"),
    }


def bad_pictures() -> dict[str, tuple[bytes, str]]:
    """Files that are no pictures, and a part of what is said of them."""
    good, photo = saved(gradient()), saved(gradient(64, 64), "JPEG")
    flipped = bytearray(good)
    flipped[-20] ^= 0x10  # in the pixels
    return {
        "empty.png": (b"", "is empty"),
        "text.png": (b"hello, this is a text", "is text"),
        "gif.png": (saved(gradient().convert("P"), "GIF"), "is a GIF"),
        "bmp.jpg": (saved(gradient(), "BMP"), "is a BMP"),
        "webp.jpg": (b"RIFF\0\0\0\0WEBPVP8 ", "is a WebP"),
        "heic.jpg": (b"\0\0\0\x18ftypheic", "is an HEIC, AVIF or video"),
        "noise.png": (bytes(range(5, 60)), "is of an unknown format"),
        "huge.png": (huge(), "50,000 × 50,000, at most 50,000,000 pixels"),
        "no-size.png": (png(header(0, 3), rows=b""), "is damaged or truncated"),
        "signature.png": (SIGNATURE, "is truncated after 8 bytes"),
        "half.png": (good[: len(good) // 2], "is truncated after"),
        "no-end.png": (good[:-12], "is truncated after"),
        "flipped.png": (bytes(flipped), "the checksum of a IDAT chunk differs"),
        "few-rows.png": (png(header(9, 9), rows=b"\0" * 20), "is damaged or truncated"),
        "no-header.png": (SIGNATURE + chunk(b"IDAT", b"") + chunk(b"IEND", b""), "starts with its IHDR chunk"),
        "depth.png": (png(header(2, 2, 5, 1), rows=bytes(8)), "is damaged or truncated"),
        "begin.jpg": (photo[:3], "is truncated"),
        "head.jpg": (photo[:200], "is truncated"),
        "half.jpg": (photo[: len(photo) * 3 // 4], "is damaged or truncated"),
        "ended.jpg": (b"\xff\xd8\xff\xd9", "is truncated"),
    }
