"""A page holds the matrices of all its frames in a bounded number of cells."""

import numpy as np

from regard.inspection.drawing.html import MAX_CELLS, figure_data
from regard.inspection.drawing.scene import Figure, Frame, Matrix, Scene

VALUES = np.random.default_rng(1).random((700, 900), dtype=np.float32)


def shapes(count):
    scene = Scene(900, 700, [Matrix(0, 0, 1, 1, VALUES)], "many")
    frames = figure_data(Figure([Frame(f"head {number}", lambda: scene) for number in range(count)]))["frames"]
    return [matrix["shape"] for frame in frames for matrix in frame["matrices"]]


def test_few_matrices_are_whole():
    assert shapes(2) == [[700, 900]] * 2


def test_many_matrices_are_pooled_alike():
    found = shapes(40)
    assert found == [[175, 225]] * 40
    assert sum(rows * columns for rows, columns in found) <= MAX_CELLS
