"""Regions: boxes as numbers, pixels as features, pictures side by side."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.data.regions import (
    UNKNOWN_CLASS,
    ImageRegions,
    Regions,
    collate_regions,
    crop_regions,
    grid_regions,
    image_regions,
    normalize_boxes,
    to_features,
)


def colored() -> np.ndarray:
    """A picture of 12 × 8 pixels: red on the left, blue on the right."""
    pixels = np.zeros((8, 12, 3), np.uint8)
    pixels[:, :6, 0], pixels[:, 6:, 2] = 200, 100
    return pixels


def test_a_box_is_its_corners_and_its_area_as_shares():
    found = normalize_boxes([(0, 0, 12, 8), (6, 2, 12, 4)], 12, 8)
    assert found.dtype == np.float32
    assert_close(torch.from_numpy(found), torch.tensor([[0, 0, 1, 1, 1], [0.5, 0.25, 1, 0.5, 0.125]]))


def test_the_first_region_is_the_whole_picture_and_the_others_are_what_is_in_the_boxes():
    found = crop_regions(colored(), [(0, 0, 6, 8), (6, 0, 12, 8)], patch=4, classes=[7, 9])
    assert found.features.shape == (3, 48)
    assert found.features.dtype == np.uint8
    whole, red, blue = found.features.reshape(3, 4, 4, 3)
    assert (red == [200, 0, 0]).all()
    assert (blue == [0, 0, 100]).all()
    assert (whole[:, 0] == [200, 0, 0]).all()
    assert (whole[:, -1] == [0, 0, 100]).all()
    assert found.classes.tolist() == [UNKNOWN_CLASS, 7, 9]
    assert found.boxes[0].tolist() == [0, 0, 1, 1, 1]


@given(cells=st.integers(1, 6), height=st.integers(6, 20), width=st.integers(6, 20))
def test_cells_tile_the_picture(cells, height, width):
    found = grid_regions(np.zeros((height, width, 3), np.uint8), cells, patch=2)
    boxes = found.boxes[1:].reshape(cells, cells, 5)
    assert len(found.features) == 1 + cells * cells
    assert boxes[..., 4].sum() == pytest.approx(1, abs=1e-5)
    assert np.allclose(boxes[:, 1:, 0], boxes[:, :-1, 2])
    assert np.allclose(boxes[1:, :, 1], boxes[:-1, :, 3])
    assert np.allclose(boxes[-1, -1, 2:4], 1)


def test_a_cell_shows_what_is_there():
    found = grid_regions(colored(), 2, patch=3).features.reshape(5, 3, 3, 3)
    for cell, color in zip(found[1:], [[200, 0, 0], [0, 0, 100]] * 2, strict=True):
        assert (cell == color).all()


@given(cells=st.integers(1, 7), side=st.integers(7, 30))
def test_no_cell_shows_what_is_not_in_the_picture(cells, side):
    found = grid_regions(np.full((side, side, 3), 255, np.uint8), cells, patch=2)
    assert (found.features == 255).all()


def test_looking_is_by_cells_or_by_boxes():
    assert len(image_regions(colored(), None, cells=3, patch=2).features) == 10
    assert len(image_regions(colored(), [(0, 0, 2, 2)], cells=0, patch=2).features) == 2


def several() -> list[ImageRegions]:
    rng = np.random.default_rng(0)
    return [
        ImageRegions(
            rng.random((count, 6)).astype(np.float32),
            normalize_boxes(rng.random((count, 4))),
            rng.integers(0, 5, count),
        )
        for count in (3, 1, 4)
    ]


def test_pictures_side_by_side_are_each_as_alone_and_padded_by_empty_boxes():
    pictures = several()
    regions = Regions(pictures)
    assert (len(regions), regions.width, regions.counts.tolist()) == (3, 6, [3, 1, 4])
    found = regions.collate([2, 1])
    assert found.features.shape == (2, 4, 6)
    for row, number in enumerate((2, 1)):
        count = len(pictures[number].features)
        assert_close(found.features[row, :count], torch.from_numpy(pictures[number].features))
        assert_close(found.boxes[row, :count], torch.from_numpy(pictures[number].boxes))
        assert found.classes[row, :count].tolist() == pictures[number].classes.tolist()
        assert not found.boxes[row, count:].any()
        assert (found.classes[row, count:] == UNKNOWN_CLASS).all()
        assert np.array_equal(regions[number].features, pictures[number].features)
    assert_close(collate_regions([pictures[2], pictures[1]]).features, found.features)


def test_pixels_are_centered_and_other_numbers_stay():
    assert to_features(np.array([[0, 255]], np.uint8)).tolist() == [[-1.9921875, 1.9921875]]
    assert to_features(np.array([[0.5, 300]], np.float32)).tolist() == [[0.5, 300]]
