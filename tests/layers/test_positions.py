"""Positions: the formula's values, and the two ways to join them."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.errors import InputError
from regard.layers.positions import (
    Added,
    Concatenated,
    LearnedPositions,
    SinusoidalPositions,
    sinusoidal,
    sinusoidal_halves,
)


@pytest.mark.parametrize("width", [4, 130, 512])
def test_values_are_the_papers_formula(width):
    table = sinusoidal(51, width)
    for place in (0, 1, 7, 50):
        for k in range(width // 2):
            angle = place / 10_000 ** (2 * k / width)
            assert table[place, 2 * k].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[place, 2 * k + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_the_first_position_is_zeros_and_ones_and_width_4_is_known():
    assert sinusoidal(1, 6).tolist() == [[0, 1, 0, 1, 0, 1]]
    assert_close(
        sinusoidal(3, 4),
        torch.tensor([[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998]]),
        atol=1e-4,
        rtol=0,
    )


def test_every_position_is_unique_and_a_step_is_a_rotation():
    table = sinusoidal(512, 64)
    distances = torch.cdist(table, table) + torch.eye(512) * 9
    assert distances.min() > 0.5
    # p(t + k) · p(t) depends on k alone: the wave's angle moves by the same amount everywhere
    assert_close(table[10] @ table[13], table[400] @ table[403], rtol=1e-4, atol=1e-4)


def test_halves_are_the_same_columns_in_another_order():
    one, other = sinusoidal(9, 10), sinusoidal_halves(9, 10)
    assert torch.equal(other, torch.cat([one[:, 0::2], one[:, 1::2]], dim=1))


def test_a_table_goes_on_beyond_what_it_keeps():
    positions = SinusoidalPositions(4, 8)
    assert torch.equal(positions(2, 9), sinusoidal(9, 8)[2:9])


def test_learned_positions_end_with_a_clear_error():
    positions = LearnedPositions(4, 8)
    assert positions(1, 4).shape == (3, 8)
    with pytest.raises(InputError, match="5 tokens.*positions for 4"):
        positions(0, 5)


def test_adding_is_concatenating_with_two_identities():
    words, places = torch.randn(2, 5, 8), sinusoidal(5, 8)
    joined = Concatenated(8)
    with torch.no_grad():
        joined.project.weight.copy_(torch.cat([torch.eye(8), torch.eye(8)], dim=1))
    assert_close(joined(words, places), Added()(words, places))
