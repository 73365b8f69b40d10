"""Decode images to 8-bit RGB: format by content, size checked before decoding, upright, transparency on white."""

import io
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from regard.errors import ImageError
from regard.images.containers import detect_format, strip_jpeg, strip_png

MAX_PIXELS = 50_000_000  # four bytes each while decoding
MAX_DEEP_PIXELS = 20_000_000  # with transparency or 16 bits, which take several copies
MAX_SIDE = 65_535  # as JPEG has; a row costs memory besides its pixels
MAX_BYTES = 256 << 20  # of a file
TRANSPOSE_TO_UPRIGHT = {  # by EXIF orientation
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def read_image(source: Path | bytes, *, name: str = "") -> Image.Image:
    """Decode a PNG or JPEG file, or its bytes, to mode RGB; the first frame of several.

    ImageError: not PNG or JPEG by its content, truncated, damaged or too large. `name` replaces the path in the error.
    """
    name = name or ("the image" if isinstance(source, bytes) else str(source))
    try:
        return _decode(source if isinstance(source, bytes) else _read_file(Path(source)))
    except ImageError as error:
        raise ImageError(f"{name}: {error}") from error.__cause__


def _read_file(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ImageError("is not a file, wanted a PNG or JPEG image")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ImageError(f"has {size:,} bytes, at most {MAX_BYTES:,} wanted; make it smaller")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise ImageError(f"cannot be read ({reason.lower()})") from error


def _decode(data: bytes) -> Image.Image:
    """Decode these bytes; errors carry no name yet."""
    is_png = detect_format(data) == "PNG"
    stripped = strip_png(data) if is_png else strip_jpeg(data)
    try:
        # Not Image.open: it warns through a filter that threads share, and accepts other formats.
        image = PngImageFile(io.BytesIO(stripped.data)) if is_png else JpegImageFile(io.BytesIO(stripped.data))
        _check_size(*image.size, MAX_DEEP_PIXELS if _is_deep(image) else MAX_PIXELS)
        return _to_upright(_to_rgb(image), stripped.orientation)
    except ImageError:
        raise
    except Exception as error:  # a decoder may raise anything for damaged bytes
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"is damaged or truncated ({reason})") from error


def _is_deep(image: Image.Image) -> bool:
    return "transparency" in image.info or image.mode in ("RGBA", "LA", "PA") or image.mode.startswith("I")


def _check_size(width: int, height: int, most: int) -> None:
    if width * height > most:
        raise ImageError(f"is {width:,} × {height:,}, at most {most:,} pixels wanted; make it smaller")
    if max(width, height) > MAX_SIDE:
        raise ImageError(f"is {width:,} × {height:,}, at most {MAX_SIDE:,} wanted a side; make it smaller")


def _to_rgb(image: Image.Image) -> Image.Image:
    """Eight bits a channel; transparency on white."""
    image.load()
    if image.mode.startswith("I"):  # 16-bit gray: keep the upper eight bits, as the decoder does for 16-bit color
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA"):
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _to_upright(image: Image.Image, orientation: int) -> Image.Image:
    transpose = TRANSPOSE_TO_UPRIGHT.get(orientation)
    return image if transpose is None else image.transpose(transpose)
