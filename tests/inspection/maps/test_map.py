"""Maps of words: the numbers behind them, labels that do not lie on each other, files that hold what they should."""

import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.errors import InputError
from regard.inspection.maps.labels import overlap, place_labels
from regard.inspection.maps.map import FRAME, MARGIN, MAX_LABELED, explained_variance, lay_out, pca, save_map, tsne

NASTY = ["<b>bold</b>", "a&b", '"quoted"', "$x_1$", "{{rows}}", "</script>", "niño", "日本語"]


def cloud(count, width=6, seed=0):
    return np.random.default_rng(seed).normal(size=(count, width)) * np.arange(width, 0, -1)


# ------------------------------------------------ numbers


def test_pca_of_points_in_a_plane_keeps_all_distances():
    flat = np.random.default_rng(0).normal(size=(9, 2))
    turned = flat @ np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0][:2]
    points = pca(turned + 3)
    near = np.linalg.norm(points[:, None] - points, axis=2)
    np.testing.assert_allclose(near, np.linalg.norm(flat[:, None] - flat, axis=2), atol=1e-9)
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-9)
    assert points[:, 0].var() >= points[:, 1].var()
    assert explained_variance(turned, points) == pytest.approx(1)


def test_pca_shows_the_share_of_the_two_largest_variances():
    matrix = cloud(50)
    variances = np.sort(np.linalg.eigvalsh(np.cov(matrix.T, bias=True)))[::-1]
    assert explained_variance(matrix, pca(matrix)) == pytest.approx(variances[:2].sum() / variances.sum())


def test_the_sign_of_pca_is_fixed():
    matrix = cloud(12)
    np.testing.assert_allclose(pca(matrix), pca(matrix[::-1])[::-1], atol=1e-9)
    np.testing.assert_allclose(pca(-matrix), -pca(matrix), atol=1e-9)
    np.testing.assert_allclose(pca(matrix + 100), pca(matrix), atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (2, 3)])
def test_few_words_and_few_numbers_have_a_map_too(shape):
    assert pca(np.ones(shape)).shape == (shape[0], 2)
    lay_out([str(n) for n in range(shape[0])], pca(np.ones(shape)))


def test_tsne_keeps_two_crowds_apart_and_is_the_same_again():
    matrix = np.vstack([cloud(12, seed=1) * 0.1, cloud(12, seed=2) * 0.1 + 50])
    points = tsne(matrix)
    inside = max(np.ptp(points[:12], axis=0).max(), np.ptp(points[12:], axis=0).max())
    assert np.linalg.norm(points[:12].mean(0) - points[12:].mean(0)) > inside
    np.testing.assert_array_equal(points, tsne(matrix))
    with pytest.raises(InputError, match="t-SNE of 3 words; wanted 4 or more"):
        tsne(matrix[:3])


# ------------------------------------------------ labels


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, MAX_LABELED))
def test_labels_lie_in_the_frame_and_on_nothing(seed, count):
    words = [f"word{n}" * (1 + n % 2) for n in range(count)]
    drawn = lay_out(words, np.random.default_rng(seed).normal(size=(count, 2)), words[:3])
    boxes = np.array([label.box for label in drawn.labels])
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= FRAME).all()
    assert (overlap(boxes, boxes) == np.eye(len(boxes), dtype=bool)).all()
    dots = np.hstack([drawn.points - 4, drawn.points + 4])
    assert not overlap(boxes, dots).any()
    assert len(boxes) >= 0.9 * count


def test_boxes_that_touch_do_not_overlap():
    found = overlap(np.array([[0, 0, 2, 2]]), np.array([[2, 0, 3, 2], [1, 1, 3, 3], [0.5, 0.5, 1, 1], [0, 2, 2, 3]]))
    assert found.tolist() == [[False, True, True, False]]


def test_a_point_alone_is_labeled_on_its_right_and_at_the_edge_on_its_left():
    points = np.array([[100.0, 100.0], [990.0, 300.0]])
    right, left = place_labels(points, ["one", "other"], [0, 1], frame=FRAME, size=15)
    assert (right.end, right.y, right.away) == ("left", 100.0, False)
    assert (left.end, left.y) == ("right", 300.0)


def test_where_there_is_no_room_there_is_no_label():
    points = np.full((30, 2), 50.0)
    found = place_labels(points, ["word"] * 30, range(30), frame=(100, 100), size=15)
    assert 0 < len(found) < 10


def test_the_map_keeps_its_shape_and_points_up_where_numbers_grow():
    points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    drawn = lay_out(["a", "b", "c"], points).points
    across, up = drawn[1] - drawn[0], drawn[2] - drawn[0]
    assert across[0] == pytest.approx(-2 * up[1])
    assert across[0] > 0
    assert (drawn >= MARGIN - 1e-6).all()
    assert (drawn <= np.array(FRAME) - MARGIN + 1e-6).all()


def test_of_many_words_the_chosen_are_labeled_or_else_the_first():
    words = [f"w{n}" for n in range(300)]
    points = np.random.default_rng(0).normal(size=(300, 2))
    assert {label.point for label in lay_out(words, points, ["w7", "w290"]).labels} == {7, 290}
    first = {label.point for label in lay_out(words, points).labels}
    assert first
    assert first <= set(range(MAX_LABELED))


# ------------------------------------------------ files


class Reader(HTMLParser):
    """What a page holds, by tag."""

    def __init__(self, text):
        super().__init__()
        self.seen: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.setdefault(tag, []).append("")
        self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.seen[self.open[-1]][-1] += data


def test_the_page_has_every_word_and_needs_nothing_else(tmp_path):
    words = [*NASTY, *(f"w{n}" for n in range(90))]
    save_map(tmp_path / "map.html", words, pca(cloud(len(words))), NASTY[:3], title="<Words> & more")
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    page = Reader(text)
    assert len(page.seen["circle"]) == len(words) + 1  # the last marks the word under the pointer
    rows = re.findall(r"<th scope=row>(.*?)</th>", text)
    assert [unescape(row) for row in rows] == words
    dots = re.findall(r"<circle .*?><title>(.*?)</title>", text)
    assert [unescape(dot) for dot in dots] == words
    assert "b" not in page.seen
    assert len(page.seen["script"]) == 1
    assert page.seen["h1"] == ["<Words> & more"]
    assert page.addresses == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"fetch\(|import |@import|url\(", text)


def test_the_page_can_be_used_by_keyboard_and_told(tmp_path):
    save_map(tmp_path / "map.html", ["a", "b"], pca(cloud(2)), ["a"])
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in text
    assert re.search(r'<svg [^>]*tabindex="0"[^>]*aria-label="Map of 2 words', text)
    assert '<label>Find a word <input id="search" type="search"' in text
    assert 'aria-live="polite"' in text
    assert "ArrowRight" in text
    assert '<circle class="chosen"' in text
    assert "{{" not in text


@pytest.mark.parametrize("name", ["map.png", "map.PNG", "map.svg", "map.pdf"])
def test_pictures_by_their_ending(tmp_path, name):
    path = tmp_path / name
    words = [word for word in NASTY if word != "日本語"]  # which matplotlib's own letters do not have
    save_map(path, words, pca(cloud(len(words))), words[:2], title="$5")
    if path.suffix.lower() == ".png":
        with Image.open(path) as picture:
            assert picture.size == (1600, 1120)
    elif path.suffix == ".svg":
        told = " ".join(ElementTree.fromstring(path.read_bytes()).itertext())
        assert all(word in told for word in [*words, "$5"])
    else:
        assert path.read_bytes().startswith(b"%PDF")
    again = tmp_path / f"again{path.suffix}"
    save_map(again, words, pca(cloud(len(words))), words[:2], title="$5")
    assert again.read_bytes() == path.read_bytes()


def test_another_ending_is_one_error_and_no_file(tmp_path):
    with pytest.raises(InputError, match=r"a figure ends in \.png, \.svg, \.pdf, \.html; got '\.gif'"):
        save_map(tmp_path / "map.gif", ["a"], np.zeros((1, 2)))
    with pytest.raises(InputError, match="there is no folder"):
        save_map(tmp_path / "no" / "map.html", ["a"], np.zeros((1, 2)))
    assert list(tmp_path.iterdir()) == []
