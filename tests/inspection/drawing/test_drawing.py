"""A figure in every format: exact numbers, text of any kind, and files that need no network."""

import base64
import json
import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.errors import InputError
from regard.inspection.drawing.colors import MARK, RAMPS, shade
from regard.inspection.drawing.files import SUFFIXES, check_path
from regard.inspection.drawing.html import MAX_SIDE, pooled, to_html
from regard.inspection.drawing.layout import framed, labelled, weights_style
from regard.inspection.drawing.scene import Figure, Frame, Line, Matrix, Picture, Rectangle, Scene, Text
from regard.inspection.drawing.svg import MAX_CELLS, number_text, to_svg
from regard.inspection.drawing.terminal import to_terminal

HOSTILE = ["</script><b>", "a & \"b\" 'c'", "$\\frac{$", "\x1b[31mred\x00", "\ud800 alone", "café 🙂"]
MAGIC = {".png": b"\x89PNG\r\n", ".pdf": b"%PDF-", ".svg": b"<svg ", ".html": b"<!doctype html>"}


def matrix_scene(values: np.ndarray, labels=None, **given) -> Scene:
    labels = labels or [f"t{number}" for number in range(len(values))]
    columns = given.pop("columns", labels)
    block = labelled(8, 38, values, labels, columns, weights_style(values.shape), name="weights", **given)
    return framed("a title", "a caption", block.items, block.width, block.height)


def page_data(figure: Figure) -> dict:
    """The data that a page brings for its script."""
    found = re.search(r'<script type="application/json" class="regard-data">(.*?)</script>', to_html(figure), re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture
def weights() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(4), 4).astype(np.float32)


@pytest.fixture
def everything(weights) -> Scene:
    """A scene with every kind of item."""
    items = [
        Text(5, 5, "upright", rotated=True, bold=True, title="more"),
        Rectangle(5, 30, 20, 10, fill="#ffffff", radius=3, opacity=0.5, title="box"),
        Line([(0, 0), (50, 40)], curved=True, title="curve"),
        Line([(0, 0), (50, 40), (60, 10)], dashed=True, arrow=True),
        Picture(100, 5, 20, 20, np.zeros((2, 2, 3), np.uint8), title="pixels"),
        Matrix(5, 50, 20, 10, weights, digits=2, masked=weights > 0.5, outlined=weights < 0.1, name="m"),
    ]
    return Scene(200, 120, items, "everything", "one of each")


# ------------------------------------------------ files


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_scene_is_written_in_the_format_of_its_suffix(everything, tmp_path, suffix):
    path = tmp_path / f"figure{suffix}"
    Figure.of(everything).save(path)
    assert path.read_bytes().startswith(MAGIC[suffix])


def test_another_suffix_and_a_missing_folder_are_errors(tmp_path):
    with pytest.raises(InputError, match=r"a figure ends in \.png, \.svg, \.pdf, \.html; got '\.gif'"):
        check_path(tmp_path / "figure.gif")
    with pytest.raises(InputError, match="there is no folder"):
        check_path(tmp_path / "none" / "figure.png")


# ------------------------------------------------ numbers


def test_every_cell_of_an_svg_has_its_exact_number_as_a_title(weights):
    svg = to_svg(matrix_scene(weights))
    titles = {unescape(one) for one in re.findall("<title>(.*?)</title>", svg)}
    for (row, column), value in np.ndenumerate(weights):
        assert f"t{row} → t{column}: {value:.6g}" in titles
        assert f">{value:.2f}</text>" in svg


def test_masked_cells_are_hatched_and_have_no_number(weights):
    hidden = np.triu(np.ones((4, 4), bool), 1)
    svg = to_svg(matrix_scene(weights, masked=hidden))
    assert svg.count('fill="url(#hatch)"') == hidden.sum() == svg.count(": masked</title>")
    assert f"{weights[0, 1]:.6g}" not in svg


def test_outlined_cells_have_a_frame_at_their_place(weights):
    outlined = np.zeros((4, 4), bool)
    outlined[2, 1] = True
    scene = matrix_scene(weights, outlined=outlined)
    (matrix,) = (item for item in scene.items if isinstance(item, Matrix))
    (frame,) = matrix.outlines
    assert (frame.x, frame.y) == (matrix.x + matrix.cell_width, matrix.y + 2 * matrix.cell_height)
    assert to_svg(scene).count(f'stroke="{MARK}"') == 1


def test_a_large_matrix_is_one_picture():
    side = int(MAX_CELLS**0.5) + 1
    svg = to_svg(matrix_scene(np.eye(side, dtype=np.float32)))
    assert svg.count("<image ") == 1
    assert f"{side} × {side} values from 0 to 1" in svg


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.125, "0.12"), (-0.001, "0.00"), (-1.5, "-1.50"), (np.inf, "∞"), (-np.inf, "-∞"), (np.nan, "NaN")],
)
def test_a_number_in_a_cell(value, shown):
    assert number_text(value, 2) == shown


def test_a_ramp_goes_from_its_first_color_to_its_last_and_what_is_no_number_is_grey():
    low, high, neither = shade(np.array([0.0, 1.0, np.nan]), "query", 0.0, 1.0).tolist()
    assert [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in (low, high)] == [
        RAMPS["query"][0],
        RAMPS["query"][-1],
    ]
    assert neither == [0xB8, 0xBC, 0xC4]


# ------------------------------------------------ text of any kind


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_label_breaks_a_file(tmp_path, suffix):
    labels = [label.removesuffix(" 🙂") for label in HOSTILE]  # no font of matplotlib's own has it
    scene = matrix_scene(np.eye(len(labels), dtype=np.float32), labels)
    figure = Figure([Frame(label, lambda: scene) for label in labels], "<choice>")
    figure.save(tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").stat().st_size > 500


def test_labels_in_an_svg_are_text():
    svg = to_svg(matrix_scene(np.eye(len(HOSTILE), dtype=np.float32), HOSTILE))
    root = ElementTree.fromstring(svg)  # valid XML
    shown = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2], "�[31mred�", "� alone", HOSTILE[5]} <= shown
    assert not list(root.iter("{http://www.w3.org/2000/svg}b"))


def test_labels_in_a_page_cannot_end_its_script():
    scene = matrix_scene(np.eye(len(HOSTILE), dtype=np.float32), HOSTILE)
    figure = Figure([Frame(HOSTILE[0], lambda: scene)], HOSTILE[0])
    page = to_html(figure)
    assert page.count("</script>") == 3  # style, data, script
    assert "<b>" not in page
    (matrix,) = page_data(figure)["frames"][0]["matrices"]
    assert matrix["rows"][0] == HOSTILE[0]
    assert matrix["rows"][3] == "�[31mred�"


def test_the_title_of_a_page_is_escaped(weights):
    scene = Scene(10, 10, [], "</title><script>alert(1)</script>")
    assert "<title>&lt;/title&gt;&lt;script&gt;" in to_html(Figure.of(scene))


def test_a_label_cannot_send_an_escape_to_the_terminal():
    labels = HOSTILE[:5]
    shown = to_terminal(matrix_scene(np.eye(5, dtype=np.float32), labels)).plain
    assert "\x1b" not in shown
    assert "�[31mred�" in shown


# ------------------------------------------------ pages


def test_a_page_needs_no_network(everything):
    page = to_html(Figure.of(everything))
    addresses = set(re.findall(r"(?:https?:)?//[a-z][^\s\"'<>\\]*\.[^\s\"'<>\\]*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, which nothing loads
    assert not re.search(r"<link|@import|\ssrc=|fetch\(|XMLHttpRequest|import\(", page)


def test_a_page_has_the_exact_numbers_of_every_frame(weights):
    hidden = weights < 0.2
    scenes = [matrix_scene(weights * part, masked=hidden, outlined=hidden.T) for part in (1, 0.5)]
    figure = Figure([Frame(f"frame {n}", lambda scene=scene: scene) for n, scene in enumerate(scenes)], "part", 1)
    data = page_data(figure)
    assert (data["choice"], data["chosen"]) == ("part", 1)
    for part, frame in zip((1, 0.5), data["frames"], strict=True):
        (matrix,) = frame["matrices"]
        assert matrix["exact"]
        found = np.frombuffer(base64.b64decode(matrix["values"]), "<f4").reshape(matrix["shape"])
        np.testing.assert_array_equal(found, weights * part)
        for name, cells in (("masked", hidden), ("outlined", hidden.T)):
            bits = np.frombuffer(base64.b64decode(matrix[name]), np.uint8)
            np.testing.assert_array_equal(np.unpackbits(bits, count=16, bitorder="little").reshape(4, 4), cells)


def test_pooling_keeps_every_maximum():
    values = np.random.default_rng(1).random((70, 45)).astype(np.float32) - 2  # negative: not lost to padding
    cells, factor = pooled(values, 20)
    assert factor == 4
    assert cells.shape == (18, 12)
    for row in range(18):
        for column in range(12):
            part = values[row * 4 : row * 4 + 4, column * 4 : column * 4 + 4]
            assert cells[row, column] == part.max()
    same, one = pooled(values, 70)
    assert one == 1
    assert same is values


def test_a_matrix_larger_than_a_page_shows_is_pooled():
    values = np.zeros((MAX_SIDE + 1, 3), np.float32)
    values[-1, 1] = 1.0
    (matrix,) = page_data(Figure.of(Scene(9, 9, [Matrix(0, 0, 1, 1, values)], "long")))["frames"][0]["matrices"]
    assert (matrix["pooled"], matrix["shape"]) == (2, [513, 2])
    found = np.frombuffer(base64.b64decode(matrix["values"]), "<f4").reshape(513, 2)
    assert found.sum() == found[-1, 0] == 1.0


def test_a_figure_shows_itself_in_a_notebook(everything):
    shown = Figure.of(everything)._repr_html_()
    assert shown.startswith("<regard-figure>")
    assert "<html" not in shown


# ------------------------------------------------ layout and terminal


def test_small_cells_have_some_of_their_labels():
    scene = matrix_scene(np.eye(300, dtype=np.float32))
    texts = [item for item in scene.items if isinstance(item, Text) and item.text.startswith("t")]
    rows = sorted(item.y for item in texts if item.anchor == "right")
    assert 40 < len(rows) < 150
    assert min(np.diff(rows)) >= 5


def test_a_scene_is_as_wide_as_its_caption():
    short, long = (framed("title", "word " * count, [], 50, 10).width for count in (1, 30))
    assert short < 100 < 400 < long


def test_a_terminal_shows_numbers_and_masked_cells(weights):
    shown = to_terminal(matrix_scene(weights, masked=np.eye(4, dtype=bool))).plain
    lines = shown.splitlines()
    assert lines[0] == "a title"
    assert lines[1] == "a caption"
    assert lines[-4].split() == ["t0", "·", *(f"{value:.2f}" for value in weights[0, 1:])]


def test_a_terminal_shades_cells_without_numbers():
    scene = Scene(9, 9, [Matrix(0, 0, 1, 1, np.array([[0.0, 0.5, 1.0]]), ["row"], ["a", "b", "c"])], "shades")
    assert to_terminal(scene).plain.splitlines()[-1].split() == ["row", "▒▒▒", "███"]


def test_a_terminal_says_that_a_wide_matrix_is_left_out():
    shown = to_terminal(matrix_scene(np.eye(30, dtype=np.float32))).plain
    assert "weights: 30 × 30 values; write them to a file with -o" in shown


def test_a_terminal_shows_a_scene_of_text_line_by_line():
    items = [Text(50, 10, "world"), Text(5, 11, "hello"), Text(5, 30, "below")]
    assert to_terminal(Scene(100, 50, items, "words")).plain.splitlines() == ["words", "hello  world", "below"]


def test_a_ramp_that_ends_at_no_number_draws_all_the_same():
    assert shade(np.array([np.nan, 1.0]), next(iter(RAMPS)), 0.0, np.nan).shape == (2, 3)
