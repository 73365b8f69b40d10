"""A picture of the user's as 8-bit RGB: known by its content, measured before it is decoded, upright, on white."""

import io
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from regard.errors import PictureError
from regard.images.containers import Bare, bare_jpeg, bare_png, kind

PIXELS = 50_000_000  # of the largest picture that is decoded; as RGB it takes three bytes each
BYTES = 256 << 20  # of the largest file that is read
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def read_picture(source: Path | bytes, *, name: str = "") -> Image.Image:
    """A PNG or JPEG, from a file or from bytes, in mode RGB; of several frames the first.

    PictureError, one line with the name (a file's path unless `name` is given): not PNG or JPEG by its content, cut
    off, damaged, or too large.
    """
    name = name or ("the picture" if isinstance(source, bytes) else str(source))
    try:
        return _decode(source if isinstance(source, bytes) else _read_file(Path(source)))
    except PictureError as error:
        raise PictureError(f"{name}: {error}") from error.__cause__


def _read_file(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise PictureError("is no file, wanted a PNG or JPEG picture")
        size = path.stat().st_size
        if size > BYTES:
            raise PictureError(f"has {size:,} bytes, at most {BYTES:,} wanted; make it smaller")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise PictureError(f"cannot be read ({reason.lower()})") from error


def _decode(data: bytes) -> Image.Image:
    """The picture in these bytes; errors have no name yet."""
    png = kind(data) == "PNG"
    bare = bare_png(data) if png else bare_jpeg(data)
    try:
        # Not Image.open: it warns, through a filter that is not a thread's own, and reads what we do not want.
        image = PngImageFile(io.BytesIO(bare.data)) if png else JpegImageFile(io.BytesIO(bare.data))
        _check_size(*image.size)
        return _upright(_rgb(image), bare)
    except PictureError:
        raise
    except Exception as error:  # what a decoder raises over damaged bytes is not a closed set
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PictureError(f"is damaged or cut off ({reason})") from error


def _check_size(width: int, height: int) -> None:
    if width * height > PIXELS:
        raise PictureError(
            f"is {width:,} × {height:,}, at most {PIXELS:,} pixels wanted; make it smaller before giving it"
        )


def _rgb(image: Image.Image) -> Image.Image:
    """Eight bits a color; what is transparent lies on white."""
    image.load()
    if image.mode.startswith("I"):  # 16 bits of gray: the upper eight, as the decoder does with 16-bit color
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA"):
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


def _upright(image: Image.Image, bare: Bare) -> Image.Image:
    turn = UPRIGHT.get(bare.orientation)
    return image if turn is None else image.transpose(turn)
