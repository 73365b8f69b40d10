"""In the terminal, text beside matrices is printed too, but no label twice."""

import numpy as np

from regard.inspection.drawing.layout import TOP, bars, labelled
from regard.inspection.drawing.scene import Scene, Text, heading
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
