"""In the terminal, text beside matrices is printed too, but no label twice."""

import numpy as np

from regard.inspection.drawing.charts import Axis, Curve, chart
from regard.inspection.drawing.layout import TOP, bars, labelled
from regard.inspection.drawing.links import linked
from regard.inspection.drawing.scene import Matrix, Scene, Text, heading
from regard.inspection.drawing.terminal import to_terminal


def test_bars_and_text_in_cells_are_printed_and_labels_are_not_repeated():
    block = labelled(8, TOP, np.eye(2), ["one", "two"], ["a", "b"])
    matrix = block.items[0]
    inside = Text(matrix.x + 5, matrix.y + 10, "here", anchor="center")
    below = bars(8, TOP + 80, ["one"], [0.25])
    scene = Scene(300, 200, [*heading("title", "caption"), *block.items, inside, *below.items], "title", "caption")
    lines = str(to_terminal(scene)).splitlines()
    assert [line.strip() for line in lines[-2:]] == ["here", "one  25.0%"]
    assert sum("two" in line for line in lines) == 1
    assert sum(line.split() == ["a", "b"] for line in lines) == 1


def test_labels_of_lines_are_left_out_and_the_lines_are_named():
    lines = linked(8, TOP, ["left"], ["right"], np.ones((1, 1)))
    curve = chart(8, 80, (100, 50), Axis("distance", [0, 1]), Axis("product", [0, 1]), [Curve("one", [0, 1], [0, 1])])
    scene = Scene(300, 200, [*heading("title"), *lines.items, *curve.items], "title")
    assert to_terminal(scene).plain.splitlines() == ["title", "", "A file has the lines too: -o figure.png"]


def test_columns_are_printed_one_below_the_other():
    left = [Text(8, 40, "encoder", column=-1), Text(8, 60, "attention", column=-1), Text(60, 60, "4 × 4", column=-1)]
    right = [Text(200, 40, "decoder", column=-2), Text(8, 90, "5 tokens"), Text(200, 90, "3 tokens")]
    lines = to_terminal(Scene(300, 100, [*left, *right], "title")).plain.splitlines()
    assert lines == ["title", "decoder", "encoder", "attention  4 × 4", "5 tokens  3 tokens"]


def test_what_is_rounded_to_zero_has_no_sign():
    matrix = Matrix(0, 0, 1, 1, np.array([[-0.001, -0.006, float("-inf")]]), ["row"], digits=2)
    *_, row = to_terminal(Scene(9, 9, [matrix], "title")).plain.splitlines()
    assert row.split() == ["row", "0.00", "-0.01", "-inf"]


def test_what_stands_in_a_cell_is_shown_in_its_column():
    matrix = Matrix(0, 0, 1, 1, np.ones((1, 2)), ["layer 0"], ["a", "b"], texts=[["first", "a longer one"]])
    *_, columns, row = to_terminal(Scene(9, 9, [matrix], "title")).plain.splitlines()
    assert columns.split() == ["a", "b"]
    assert row == "layer 0  first a longer one"
    assert len(columns) == len(row)
