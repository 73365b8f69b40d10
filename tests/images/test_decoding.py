"""Reading pictures: every way of writing gives the colors it means, every bad file is one line."""

import io
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.errors import DataError, ImageError
from regard.images import decoding
from regard.images.containers import strip_jpeg, strip_png
from regard.images.decoding import read_image
from tests.images import making

ODD = making.odd_pictures()
BAD = making.bad_pictures()


def pixels(data: bytes) -> np.ndarray:
    image = read_image(data)
    assert image.mode == "RGB"
    return np.asarray(image)


def failure(source, **name) -> str:
    with pytest.raises(ImageError) as caught:
        read_image(source, **name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ODD)
def test_every_way_of_writing_is_read(name, tmp_path):
    (tmp_path / name).write_bytes(ODD[name])
    image = read_image(tmp_path / name)
    assert (image.mode, np.asarray(image).dtype) == ("RGB", np.uint8)
    assert np.array_equal(np.asarray(image), pixels(ODD[name]))


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_picture_is_one_line_with_its_path(name, tmp_path):
    data, reason = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    assert failure(path).startswith(f"{path}: ")
    assert reason in failure(path)
    assert failure(data).startswith("the image: ")
    assert failure(data, name="upload.png").startswith("upload.png: ")


def test_a_picture_error_is_a_data_error():
    assert issubclass(ImageError, DataError)


def test_without_loss_the_pixels_are_the_same():
    for name in ("rgb.png", "text-bomb.png", "profile-bomb.png", "bad-animation.png", "bad-exif.png"):
        assert np.array_equal(pixels(ODD[name]), np.asarray(making.gradient())), name


def test_a_jpeg_is_near_what_was_written():
    picture = making.corners(64, 64)
    for kind, image in {"RGB": picture, "CMYK": picture.convert("CMYK")}.items():
        found = pixels(making.saved(image, "JPEG", quality=95, subsampling=0))
        assert np.abs(found.astype(int) - np.asarray(picture)).max() < 24, kind


def test_sixteen_bits_keep_their_upper_eight():
    assert pixels(making.sixteen_bit_gray())[0].tolist() == [[0] * 3, [0x12] * 3, [0x80] * 3, [255] * 3]
    assert pixels(making.sixteen_bit_color())[0].tolist() == [[0, 0x12, 255], [0x80, 0, 0]]


def test_a_color_key_of_sixteen_bits_is_let_go():
    """Read as one of eight bits it would hide another color."""
    head, key = making.header(1, 1, 16, 2), making.chunk(b"tRNS", b"\0\x12\0\0\0\0")
    assert pixels(making.png(head, key, rows=b"\0\x12\x34\0\0\0\0")).tolist() == [[[0x12, 0, 0]]]


def test_nothing_but_the_picture_reaches_the_decoder():
    photo = making.saved(
        making.gradient(), "JPEG", exif=b"Exif\0\0" + making.exif(6), comment=b"words", icc_profile=b"p" * 99
    )
    assert strip_jpeg(photo).orientation == 6
    assert strip_jpeg(photo).data == making.saved(making.gradient(), "JPEG")
    assert strip_png(making.text_bomb()).data == making.saved(making.gradient())


def test_what_is_transparent_lies_on_white():
    assert pixels(making.palette())[0].tolist() == [[255, 0, 0], [127, 255, 127], [255, 255, 255]]
    clear = Image.new("RGBA", (1, 1), (10, 20, 30, 51))  # a fifth of the color, four fifths of white
    assert pixels(making.saved(clear))[0, 0].tolist() == [206, 208, 210]
    gray = Image.new("LA", (1, 1), (0, 51))
    assert pixels(making.saved(gray))[0, 0].tolist() == [204] * 3
    for kind, key, color in (("RGB", (1, 2, 3), (1, 2, 3)), ("L", 7, 7)):
        assert pixels(making.saved(Image.new(kind, (1, 1), color), transparency=key)).tolist() == [[[255] * 3]]


def test_one_bit_is_black_and_white():
    found = pixels(making.saved(making.corners(4, 2).convert("L").point(lambda gray: gray > 100 and 255).convert("1")))
    assert found[..., 0].tolist() == [[0, 0, 255, 255], [255, 255, 0, 0]]


# How the corners (red above left, blue below right) are stored so that, turned as EXIF says, they are right again.
STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", STORED)
def test_pictures_are_turned_upright(orientation, order):
    upright = making.corners()
    turn = STORED[orientation]
    stored = upright if turn is None else upright.transpose(turn)
    exif = making.exif(orientation, order)
    assert np.array_equal(pixels(making.with_chunk(making.saved(stored), b"eXIf", exif)), np.asarray(upright))
    found = pixels(making.saved(stored, "JPEG", quality=95, subsampling=0, exif=b"Exif\0\0" + exif))
    assert np.abs(found.astype(int) - np.asarray(upright)).max() < 24


@pytest.mark.parametrize("exif", [b"", b"II*\0", making.exif(9), making.exif(0), making.exif(6)[:-8], bytes(40)])
def test_exif_that_cannot_be_turns_nothing(exif):
    data = making.with_chunk(making.saved(making.corners()), b"eXIf", exif)
    assert np.array_equal(pixels(data), np.asarray(making.corners()))


def test_of_an_animation_the_first_frame():
    assert pixels(making.animated()).tolist() == [[[255, 0, 0]] * 4] * 4


def test_a_huge_header_and_packed_texts_take_no_memory():
    """The huge one has no rows: decoded before it is measured, it would be called truncated."""
    pixels(making.saved(making.gradient()))  # what Pillow loads once
    bomb = making.text_bomb()
    tracemalloc.start()
    assert "50,000 × 50,000" in failure(making.huge())
    pixels(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_the_largest_picture_and_the_largest_file(monkeypatch, tmp_path):
    data = making.saved(making.gradient(12, 8))
    monkeypatch.setattr(decoding, "MAX_PIXELS", 96)
    read_image(data)
    monkeypatch.setattr(decoding, "MAX_PIXELS", 95)
    assert "12 × 8, at most 95 pixels" in failure(data)
    monkeypatch.setattr(decoding, "MAX_BYTES", 10)
    (tmp_path / "a.png").write_bytes(data)
    assert f"has {len(data)} bytes, at most 10 wanted" in failure(tmp_path / "a.png")


@pytest.mark.parametrize(("size", "mode"), [((3, 70_000), "L"), ((5_000, 4_001), "LA"), ((5_000, 4_001), "I;16")])
def test_a_long_picture_and_a_large_deep_one_take_no_memory(size, mode):
    """Their rows compress to next to nothing; decoded, they would take several copies."""
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, "PNG")
    said = failure(stream.getvalue())
    assert f"is {size[0]:,} × {size[1]:,}, at most" in said


def test_what_is_no_file(tmp_path):
    assert failure(tmp_path / "a.png") == f"{tmp_path}/a.png: cannot be read (no such file or directory)"
    assert "is not a file" in failure(tmp_path)
    assert "cannot be read" in failure(tmp_path / "a\0.png")
    assert "cannot be read" in failure(tmp_path / ("a" * 5000))
    os.mkfifo(tmp_path / "pipe.png")
    assert "is not a file" in failure(tmp_path / "pipe.png")


def read_or_fail(data: bytes) -> None:
    try:
        image = read_image(data)
    except ImageError as error:
        line = str(error)
    else:
        line = image.mode
    assert line == "RGB" or (line.startswith("the image: ") and "\n" not in line)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([b"", making.SIGNATURE, b"\xff\xd8\xff", making.SIGNATURE + making.header(3, 3)]), st.binary())
@example(b"\xff\xd8\xff", b"\xff\xff\xff\xff")
def test_any_bytes_are_a_picture_or_our_error(start, rest):
    read_or_fail(start + rest)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(set(ODD) - {"text-bomb.png", "profile-bomb.png"})), st.data())
def test_a_damaged_picture_is_a_picture_or_our_error(name, data):
    raw = bytearray(ODD[name])
    places = st.integers(0, len(raw) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=8)):
        raw[place] = byte
    read_or_fail(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    read_or_fail(bytes(raw))
