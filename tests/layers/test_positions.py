"""Positions: the formula's values, the two ways to join them, and those that turn instead."""

import cmath
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from regard.errors import InputError
from regard.layers.positions import (
    Added,
    Concatenated,
    LearnedPositions,
    RopeScaling,
    Rotary,
    SinusoidalPositions,
    scale_frequencies,
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
    hidden, position_ids = torch.randn(2, 5, 8), sinusoidal(5, 8)
    joined = Concatenated(8)
    with torch.no_grad():
        joined.project.weight.copy_(torch.cat([torch.eye(8), torch.eye(8)], dim=1))
    assert_close(joined(hidden, position_ids), Added()(hidden, position_ids))


def test_learned_positions_of_places_are_the_rows_of_the_table():
    positions = LearnedPositions(4, 8)
    torch.nn.init.normal_(positions.weight)
    position_ids = torch.tensor([[0, 1, 2], [3, 0, 1]])
    assert torch.equal(positions(0, 4, position_ids), positions.weight[position_ids])
    assert torch.equal(positions(0, 3, position_ids)[0], positions(0, 3))


def turned(heads, position_ids, **settings):
    return Rotary(heads.shape[-1], **settings)(position_ids).apply_rotary(heads)


@pytest.mark.parametrize(("width", "base"), [(2, 10_000.0), (6, 100.0), (64, 500_000.0)])
def test_turning_is_multiplying_complex_numbers(width, base):
    """Numbers k and k + K/2 are one complex number z; at place p it is z · exp(i p base^(-2k/K))."""
    heads = torch.randn(2, 3, 9, width)
    half = width // 2
    numbers = torch.complex(heads[..., :half], heads[..., half:])
    for place in range(9):
        for k in range(half):
            numbers[:, :, place, k] *= cmath.exp(1j * place * base ** (-2 * k / width))
    wanted = torch.cat([numbers.real, numbers.imag], dim=-1)
    assert_close(turned(heads, torch.arange(9), theta=base), wanted, atol=2e-6, rtol=1e-5)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    one=st.integers(0, 500),
    other=st.integers(0, 500),
    move=st.integers(0, 500),
    half=st.integers(1, 16),
)
def test_a_score_depends_on_the_distance_alone(seed, one, other, move, half):
    generator = torch.Generator().manual_seed(seed)
    query, key = (torch.randn(1, 1, 1, 2 * half, generator=generator).double() for _ in range(2))
    rotary = Rotary(2 * half).double()

    def score(query_at, key_at):
        return (
            (rotary(torch.tensor([query_at])).apply_rotary(query) * rotary(torch.tensor([key_at])).apply_rotary(key))
            .sum()
            .item()
        )

    assert score(one, other) == pytest.approx(score(one + move, other + move), abs=1e-9)


def test_another_distance_is_another_score():
    heads = torch.ones(1, 1, 20, 8)
    scores = turned(heads, torch.arange(20)) @ heads[0, 0, 0]
    assert len(set(scores[0, 0].tolist())) == 20


def test_turning_keeps_the_norm_and_place_0_as_it_was():
    heads = torch.randn(2, 3, 50, 16)
    found = turned(heads, torch.arange(50))
    assert_close(found.norm(dim=-1), heads.norm(dim=-1))
    assert torch.equal(found[:, :, 0], heads[:, :, 0])
    assert (found[:, :, 1:] - heads[:, :, 1:]).abs().amax(-1).min() > 0.01


def test_each_row_may_have_places_of_its_own():
    heads = torch.randn(3, 2, 4, 8)
    position_ids = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 2], [7, 8, 9, 10]])
    found = turned(heads, position_ids)
    for row in range(3):
        assert_close(found[row], turned(heads[row : row + 1], position_ids[row])[0])


def test_rates_are_a_formula_and_are_not_saved():
    with torch.device("meta"):
        rotary = Rotary(8)
    assert rotary.frequencies.tolist() == pytest.approx([1.0, 0.1, 0.01, 0.001])
    assert not rotary.state_dict()


LLAMA_3 = RopeScaling(factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192)


def test_stretching_slows_the_slow_waves_and_leaves_the_fast_ones():
    lengths = torch.tensor([10.0, 2047.0, 8193.0, 1e6])  # shorter than 8192 / 4 twice, longer than 8192 / 1 twice
    rates = 2 * math.pi / lengths
    assert_close(scale_frequencies(rates, LLAMA_3), rates / torch.tensor([1.0, 1.0, 32.0, 32.0]))


def test_between_the_bounds_stretching_mixes():
    rates = 2 * math.pi / torch.tensor([8192 / 2.5])  # 2.5 turns: half way from 1 to 4
    assert_close(scale_frequencies(rates, LLAMA_3), rates * (0.5 + 0.5 / 32))


@pytest.mark.parametrize("rope_scaling", [LLAMA_3, RopeScaling(8.0, 1.0, 4.0, 8192), RopeScaling(4.0, 0.5, 8.0, 64)])
def test_stretched_rates_are_those_of_transformers(rope_scaling):
    names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        rope_theta=500_000.0,
        max_position_embeddings=131_072,
        rope_scaling={"rope_type": "llama3", **dict(zip(names, rope_scaling, strict=True))},
    )
    ours = Rotary(64, 500_000.0, rope_scaling).frequencies
    assert_close(ours, LlamaRotaryEmbedding(config).inv_freq, atol=0, rtol=2e-7)
    assert not torch.equal(ours, Rotary(64, 500_000.0).frequencies)


def test_pairs_are_those_of_transformers():
    theirs = LlamaRotaryEmbedding(LlamaConfig(hidden_size=32, num_attention_heads=2))
    heads = torch.randn(1, 2, 6, 16)
    cosine, sine = theirs(heads, torch.arange(6)[None])
    one, other = heads.chunk(2, dim=-1)
    wanted = heads * cosine[:, None] + torch.cat([-other, one], dim=-1) * sine[:, None]
    assert_close(turned(heads, torch.arange(6)), wanted)
