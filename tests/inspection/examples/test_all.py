"""Every example is drawn in every format, all of its frames, with a title and a sentence that says how to read it."""

import pytest

from regard.errors import InputError
from regard.inspection.drawing.files import SUFFIXES
from regard.inspection.drawing.scene import Line, Matrix, Rectangle, Text
from regard.inspection.drawing.terminal import to_terminal
from regard.inspection.examples import EXAMPLES, draw_example
from regard.inspection.maps.labels import text_width

SIGNATURES = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF", ".html": b"<!doctype html>"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_format_is_written(name, tmp_path):
    figure = draw_example(name)
    for suffix in SUFFIXES:
        path = tmp_path / f"{name}{suffix}"
        figure.save(path)
        assert path.read_bytes().startswith(SIGNATURES[suffix])


def corners(item):
    """The left, top, right and bottom end of an item."""
    if isinstance(item, Line):
        across, down = zip(*item.points, strict=True)
        return min(across), min(down), max(across), max(down)
    if isinstance(item, Matrix | Rectangle):
        return item.x, item.y, item.x + item.width, item.y + item.height
    wide = text_width(item.text, item.size) * 0.92
    if item.rotated:
        return item.x, item.y - (wide if item.anchor == "left" else wide / 2), item.x, item.y
    left = item.x - {"left": 0.0, "center": wide / 2, "right": wide}[item.anchor]
    return left, item.y, left + wide, item.y


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_is_cut_off(name):
    for frame in draw_example(name).frames:
        scene = frame.draw()
        for item in scene.items:
            left, top, right, bottom = corners(item)
            assert min(left, top) >= 0, item
            assert right <= scene.width, item
            assert bottom <= scene.height, item


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_frame_says_what_it_shows(name):
    figure = draw_example(name)
    scenes = [frame.draw() for frame in figure.frames]
    assert len({scene.title for scene in scenes}) == len(scenes)
    for scene in scenes:
        assert scene.caption.endswith(".")
        assert {scene.title, scene.caption} <= {item.text for item in scene.items if isinstance(item, Text)}
        assert scene.title in to_terminal(scene).plain


def test_an_unknown_example_is_an_error_with_all_names():
    with pytest.raises(InputError, match=r"there is no example 'score'; wanted one of .*scores.*multi-head"):
        draw_example("score")
