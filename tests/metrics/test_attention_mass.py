"""Attention against the truth: which cells a box covers, and what mass is by chance."""

import numpy as np
import pytest

from regard.metrics.attention_mass import AttentionMass, cells_in_box


def test_a_box_covers_the_cells_whose_middle_is_inside():
    covered = cells_in_box((8, 0, 24, 8), side=64, grid=8).reshape(8, 8)
    assert np.argwhere(covered).tolist() == [[0, 1], [0, 2]]
    assert np.argwhere(cells_in_box((5, 13, 18, 26), 64, 8).reshape(8, 8)).tolist() == [[2, 1]]
    assert cells_in_box((0, 0, 64, 64), 64, 8).all()


def test_the_smallest_thing_of_a_scene_always_covers_a_cell():
    for left in range(1, 50):
        assert cells_in_box((left, 3, left + 13, 16), 64, 8).any()


def test_uniform_attention_has_the_mass_of_chance_and_a_sharp_one_all_of_it():
    things = [cells_in_box((8, 0, 24, 8), 64, 8), None, cells_in_box((0, 0, 32, 32), 64, 8)]
    even, sharp = np.full((3, 64), 1 / 64), np.zeros((3, 64))
    sharp[:, 1] = 1.0
    mass = AttentionMass()
    mass.add(np.stack([even, sharp]), things)
    assert mass.words == 2
    assert mass.chance == pytest.approx((2 / 64 + 16 / 64) / 2)
    assert mass.mean == pytest.approx([mass.chance, 1.0])


def test_masses_of_several_captions_are_a_mean_over_words():
    mass, thing = AttentionMass(), np.array([True, False])
    mass.add(np.array([[1.0, 0.0], [0.5, 0.5]]), [thing, thing])
    mass.add(np.array([[0.0, 1.0]]), [thing])
    assert mass.mean == pytest.approx(0.5)
    assert mass.chance == 0.5
