"""Squares of one size: what is seen of a picture, where its boxes lie, and the numbers a model gets."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.images.preprocessing import IMAGENET_MEAN, IMAGENET_STD, PAD_COLOR, crop_transform, normalize, preprocess
from tests.images import making

CROPS = ["center", "squash", "pad"]


def test_a_square_of_the_right_size_is_not_changed():
    picture = making.gradient(16, 16)
    for crop in CROPS:
        assert np.array_equal(preprocess(picture, 16, crop=crop), np.asarray(picture))


def test_center_is_the_largest_square_in_the_middle():
    picture = making.gradient(20, 8)
    assert np.array_equal(preprocess(picture, 8), np.asarray(picture)[:, 6:14])
    assert np.array_equal(
        preprocess(picture.transpose(Image.Transpose.TRANSPOSE), 8), np.asarray(picture).transpose(1, 0, 2)[6:14]
    )


def test_squash_keeps_all_and_pad_adds_borders():
    red = Image.new("RGB", (40, 20), "red")
    assert (preprocess(red, 10, crop="squash") == (255, 0, 0)).all()
    padded = preprocess(red, 10, crop="pad")
    assert (padded[2:7] == (255, 0, 0)).all()
    assert (padded[:2] == PAD_COLOR).all()
    assert (padded[7:] == PAD_COLOR).all()


@pytest.mark.parametrize("crop", CROPS)
@pytest.mark.parametrize("size", [(1, 1), (1, 40_000), (40_000, 1), (3, 1000)])
def test_the_thinnest_pictures_are_prepared_too(crop, size):
    pixels = preprocess(Image.new("RGB", size, "red"), 8, crop=crop)
    assert pixels.shape == (8, 8, 3)
    assert (pixels == (255, 0, 0)).all(-1).any()


@pytest.mark.parametrize("crop", CROPS)
def test_a_box_lies_where_its_thing_is_seen(crop):
    pixels = np.zeros((60, 90, 3), np.uint8)
    pixels[24:36, 42:60] = 255
    seen = preprocess(Image.fromarray(pixels), 30, crop=crop)
    inside = (seen == seen.max()).all(-1)
    rows, columns = np.nonzero(inside)
    ((left, top, right, bottom),) = crop_transform(90, 60, 30, crop).to_square(np.array([[42, 24, 60, 36]]))
    assert (columns.min(), rows.min()) == pytest.approx((left, top), abs=1)
    assert (columns.max() + 1, rows.max() + 1) == pytest.approx((right, bottom), abs=1)


def test_boxes_by_hand():
    box = np.array([[10, 0, 30, 20], [0, 5, 4, 6]])
    assert crop_transform(40, 20, 10, "squash").to_square(box).tolist() == [[2.5, 0, 7.5, 10], [0, 2.5, 1, 3]]
    assert crop_transform(40, 20, 10, "center").to_square(box).tolist() == [[0, 0, 10, 10], [0, 2.5, 0, 3]]
    # 40 × 20 at a quarter is 10 × 5, two rows of border above.
    assert crop_transform(40, 20, 10, "pad").to_square(box).tolist() == [[2.5, 2, 7.5, 7], [0, 3.25, 1, 3.5]]
    assert crop_transform(40, 20, 10, "pad").to_square(np.empty((0, 4))).shape == (0, 4)


SIZES = st.integers(1, 500)


@settings(deadline=None)
@given(
    SIZES, SIZES, st.integers(1, 64), st.sampled_from(CROPS), st.tuples(*[st.floats(0, 1, allow_subnormal=False)] * 4)
)
def test_boxes_stay_inside_and_come_back(width, height, side, crop, shares):
    frame = crop_transform(width, height, side, crop)
    left, top, right, bottom = frame.source
    x, y = left + np.sort(shares[:2]) * (right - left), top + np.sort(shares[2:]) * (bottom - top)
    box = np.array([[x[0], y[0], x[1], y[1]]])
    there = frame.to_square(box)
    assert (there >= 0).all()
    assert (there <= side).all()
    assert np.allclose(frame.to_image(there), box, atol=1e-6)


def test_normalized_pixels_by_hand():
    pixels = np.zeros((1, 1, 2, 3), np.uint8)
    pixels[0, 0, 1] = (255, 128, 51)
    pixels.flags.writeable = False  # as pixels mapped from a file are
    found = normalize(pixels)
    assert (found.dtype, found.shape) == (torch.float32, (1, 3, 1, 2))
    wanted = [
        [-0.485 / 0.229, 0.515 / 0.229],
        [-0.456 / 0.224, (128 / 255 - 0.456) / 0.224],
        [-0.406 / 0.225, (0.2 - 0.406) / 0.225],
    ]
    torch.testing.assert_close(found[0, :, 0], torch.tensor(wanted))
    assert torch.equal(normalize(torch.tensor(pixels)), found)


def test_the_padding_is_about_zero():
    assert normalize(np.full((1, 2, 2, 3), PAD_COLOR, np.uint8)).abs().max() < 0.02
    assert len(IMAGENET_MEAN) == len(IMAGENET_STD) == 3
