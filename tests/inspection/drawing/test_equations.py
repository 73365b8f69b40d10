"""Equations: matrices of one line stand at one height, and what is left out of a large one is said."""

import numpy as np

from regard.inspection.drawing.equations import Part, equations
from regard.inspection.drawing.scene import Matrix, Text


def test_matrices_of_a_line_start_at_one_height_and_do_not_overlap():
    line = [
        Part("X", np.eye(2), "grey", ["a", "b"], has_labels=True),
        Part("W", np.eye(4), "query", (), ["one", "two", "three", "a long one"], sign="×"),
        Part("Y", np.eye(2), "value", ["a", "b"], sign="="),
    ]
    block = equations(10, 20, [line, line])
    drawn = [item for item in block.items if isinstance(item, Matrix)]
    for first, second, third in (drawn[:3], drawn[3:]):
        assert first.y == second.y == third.y
        assert first.x + first.width < second.x
        assert second.x + second.width < third.x
    assert max(one.y + one.height for one in drawn[:3]) < drawn[3].y
    signs = [item for item in block.items if isinstance(item, Text) and item.text in "×="]
    assert [one.y - matrix.y for one, matrix in zip(signs, drawn[1:3], strict=False)] == [15, 15]


def test_a_large_matrix_says_how_much_of_it_is_shown():
    block = equations(0, 0, [[Part("W", np.zeros((20, 64)), "query")]])
    assert "8 × 8 of 20 × 64" in {item.text for item in block.items if isinstance(item, Text)}
