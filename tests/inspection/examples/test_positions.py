"""Positions: the sinusoids of the paper's formula, and the distances of neighbors."""

import math

import numpy as np
import pytest

from regard.inspection.drawing.scene import Line
from regard.inspection.examples import draw_example
from regard.inspection.examples.binary_positions import binary, neighbor_distances
from regard.layers.positions import SinusoidalPositions
from tests.inspection.views.subjects import has_title, matrices


@pytest.mark.parametrize(("number", "width"), [(0, 130), (1, 512)])
def test_heat_maps_are_the_formula(number, width):
    values = matrices(draw_example("positions").frames[number].draw())["sinusoidal positions"].values
    assert values.shape == (51, width)
    for position, pair in ((0, 0), (7, 3), (50, width // 2 - 1)):
        angle = position / 10_000 ** (2 * pair / width)
        assert values[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
        assert values[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_curves_are_columns_and_their_frequency_falls():
    scene = draw_example("positions").frames[2].draw()
    assert has_title(scene, f"i = 20: 7 → {math.sin(7 / 10_000 ** (20 / 130)):.6g}")
    lines = {item.title: np.array(item.points)[:, 1] for item in scene.items if isinstance(item, Line) and item.title}
    turns = [int((np.diff(np.sign(np.diff(lines[f"i = {i}"]))) != 0).sum()) for i in (0, 10, 20, 40, 60)]
    assert turns == sorted(turns, reverse=True)
    assert turns[0] > turns[1] > turns[2] > turns[3] > turns[4]


def test_binary_codes_are_the_lectures():
    lines = ["".join(str(int(bit)) for bit in code) for code in binary()]
    assert lines == [f"{position:04b}" for position in range(16)]


def test_neighbors_jump_in_binary_and_are_equally_far_in_sinusoids():
    flips = [(position ^ (position + 1)).bit_count() for position in range(15)]
    assert neighbor_distances(binary()).tolist() == pytest.approx([math.sqrt(flip) for flip in flips])
    assert flips[7] == 4
    assert flips[8] == 1
    constant = 2 * math.sqrt(sum(math.sin(rate / 2) ** 2 for rate in (1, 0.01)))
    assert neighbor_distances(SinusoidalPositions(16, 4)(0, 16)).tolist() == pytest.approx([constant] * 15)
    scene = draw_example("binary-positions").scene
    assert has_title(scene, "7 → 8: 2")
    assert has_title(scene, f"7 → 8: {constant:.6g}")


def test_distances_of_sinusoids_depend_on_the_difference_alone():
    drawn = matrices(draw_example("binary-positions").frames[1].draw())
    sinusoidal, bits = (drawn[f"distances of {kind} codes"].values for kind in ("sinusoidal", "binary"))
    for apart in range(1, 15):
        assert np.ptp(np.diagonal(sinusoidal, apart)) < 1e-5
    assert np.ptp(np.diagonal(bits, 1)) == pytest.approx(1.0)
    assert bits[7, 8] == 2.0
    assert bits[0, 8] == 1.0
