"""Bounding boxes of the user's file: what is no box is one line, before anything is cropped."""

from types import SimpleNamespace

import numpy as np
import pytest

from regard.errors import InputError
from regard.tasks.vision_language.pipeline import MAX_BOXES, VisionLanguagePipeline

PIXELS = np.zeros((20, 30, 3), np.uint8)


@pytest.fixture
def pipeline():
    """One whose model takes boxes, in patches of 2 × 2 pixels."""
    vision = SimpleNamespace(grid=0, patch_size=2)
    return VisionLanguagePipeline("vilbert", SimpleNamespace(config=SimpleNamespace(vision=vision)), None)


@pytest.mark.parametrize("boxes", [[[0, 0, 2, 2]], [(0.5, 0, 2, 2)], np.array([[0, 0, 2, 2]]).tolist()])
def test_boxes_are_cropped(pipeline, boxes):
    assert pipeline.regions_of(PIXELS, boxes).features.shape == (2, 12)


@pytest.mark.parametrize(
    "box", ["abcd", 5, None, True, {}, {"a": 1}, [], [0, 0, 2], [0, 0, 2, "2"], [0, 0, 2, None], [0, 0, [1], 2]]
)
def test_what_is_no_box_is_one_line(pipeline, box):
    with pytest.raises(
        InputError, match=r"^box 0 is .*, wanted \(left, top, right, bottom\) inside the image of 30 × 20"
    ):
        pipeline.regions_of(PIXELS, [box])


@pytest.mark.parametrize("boxes", ["abcd", 5, True, {"a": 1}])
def test_what_is_no_list_of_boxes_is_one_line(pipeline, boxes):
    with pytest.raises(InputError, match=r"^the boxes are .*, wanted a list of \(left, top, right, bottom\)"):
        pipeline.regions_of(PIXELS, boxes)


def test_more_boxes_than_anyone_detects_are_refused(pipeline):
    with pytest.raises(InputError, match=f"got {MAX_BOXES + 1:,} boxes, at most {MAX_BOXES:,}"):
        pipeline.regions_of(PIXELS, [[0, 0, 2, 2]] * (MAX_BOXES + 1))
