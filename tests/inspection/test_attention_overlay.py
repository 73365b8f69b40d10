"""Strips of looks: the overlay's numbers, and files that need nothing else."""

import re

import numpy as np
import pytest
from PIL import Image

from regard.errors import InputError
from regard.inspection.attention_overlay import overlay, page, save_overlay


@pytest.fixture
def pixels():
    return np.full((16, 16, 3), 200, np.uint8)


def look(*at, grid=4):
    weights = np.full((grid, grid), 0.01)
    weights[at] = 1 - 0.01 * (grid * grid - 1)
    return weights


def test_the_cell_looked_at_most_is_light_and_violet_and_the_others_are_dark(pixels):
    panel = overlay(pixels, look(1, 2))
    light = np.round(0.75 * 200 + 0.25 * np.array([0x7C, 0x3A, 0xED]))
    assert panel[4:8, 8:12].reshape(-1, 3).tolist() == [light.tolist()] * 16
    others = panel.copy()
    others[4:8, 8:12] = 0
    assert others.max() < 60
    assert len(np.unique(panel.reshape(-1, 3), axis=0)) == 2


def test_an_even_look_darkens_nothing(pixels):
    panel = overlay(pixels, np.full((4, 4), 1 / 16))
    assert panel.min() > 150


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_each_ending_is_a_file_of_its_kind(tmp_path, pixels, ending):
    path = tmp_path / f"look.{ending}"
    words = ["a", "large", "red", "circle", "above", "a", "ring"]
    save_overlay(path, pixels, words, np.stack([look(0, n % 4) for n in range(7)]))
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype html>"}[ending]
    assert path.read_bytes().startswith(head)
    if ending == "png":
        with Image.open(path) as picture:
            assert picture.width > picture.height > 100  # two rows of panels
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_page_needs_nothing_else_and_has_the_numbers_behind_it(pixels):
    text = page(pixels, ["a", "<b>&{{rows}}"], np.stack([look(0, 0), look(3, 1)]))
    assert not re.search(r"https?:|<script|<link|src=\"(?!data:)", text)
    assert text.count("data:image/png;base64,") == 3
    assert "&lt;b&gt;&amp;{{rows}}" in text
    assert "<b>" not in text
    assert "<tr><th scope=row>a</th><td>1, 1</td><td>0.850</td>" in text
    assert "<td>4, 2</td><td>0.850</td>" in text


def test_no_picture_is_begun_where_none_can_be_written(tmp_path, pixels):
    with pytest.raises(InputError, match=r"look.gif: a figure ends in .png, .svg, .pdf, .html; got '.gif'"):
        save_overlay(tmp_path / "look.gif", pixels, [], np.empty((0, 4, 4)))
    with pytest.raises(InputError, match="there is no folder"):
        save_overlay(tmp_path / "no" / "look.png", pixels, [], np.empty((0, 4, 4)))


def test_a_caption_without_words_is_the_picture_alone(tmp_path, pixels):
    for ending in ("png", "html"):
        save_overlay(tmp_path / f"none.{ending}", pixels, [], np.empty((0, 4, 4)))
        assert (tmp_path / f"none.{ending}").exists()
