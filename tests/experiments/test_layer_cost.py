"""Costs of layers: every formula against what torch does, and what the fits say of known curves."""

import pytest
import torch

from regard.experiments import layer_cost
from regard.experiments.layer_cost import (
    KINDS,
    Measured,
    Pass,
    Size,
    find_crossing,
    growth,
    kept_bytes,
    measure,
    pairings,
    power,
)


def test_the_lectures_orders_of_growth():
    """n d² for recurrence, k n d² for convolution, n² d for the scores; n steps against one; paths n, n / k, 1."""
    size, longer, wider = Size(100, 32, kernel=3), Size(200, 32, kernel=3), Size(100, 64, kernel=3)
    found = {kind.name: kind for kind in KINDS}
    for name, by_length, by_width in (
        ("recurrence", 2, 4),
        ("convolution", 2, 4),
        ("scores, written out", 4, 2),
        ("scores, fast kernel", 4, 2),
    ):
        adds = found[name].multiply_adds
        assert adds(longer) / adds(size) == by_length
        assert adds(wider) / adds(size) == by_width
    assert [found[name].sequential_steps(size) for name in ("recurrence", "convolution", "self-attention")] == [
        100,
        1,
        1,
    ]
    assert [found[name].longest_path(size) for name in ("recurrence", "convolution", "self-attention")] == [100, 50, 1]


@pytest.mark.parametrize("width", [16, 128, 512])
def test_recurrence_and_self_attention_cost_the_same_where_n_is_d(width):
    recurrence, attention = (
        next(kind for kind in KINDS if kind.name == name) for name in ("recurrence", "self-attention")
    )
    for length, sign in ((width // 2, -1), (width, 0), (2 * width, 1)):
        apart = attention.multiply_adds(Size(length, width)) - recurrence.multiply_adds(Size(length, width))
        assert (apart > 0) - (apart < 0) == sign


def test_n_squared_plus_m_squared_plus_nm_is_counted():
    for one in pairings():
        assert one.formula == one.counted == one.source**2 + one.target**2 + one.source * one.target


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [Size(64, 32, heads=4), Size(200, 16, heads=2, kernel=5)])
def test_what_is_kept_for_the_backward_pass_is_what_the_formula_says(kind, size):
    one = kind.build(size)
    assert kept_bytes(one.run, one.given) == pytest.approx(4 * kind.kept_numbers(size), rel=0.02)


def test_written_out_attention_keeps_n_squared_numbers_and_the_kernel_n():
    kept = {}
    for kind in KINDS[-2:]:
        lengths = [256, 512, 1024]
        passes = [kind.build(Size(length, 16, heads=2)) for length in lengths]
        kept[kind.name] = power(lengths, [kept_bytes(one.run, one.given) for one in passes])
    assert kept["scores, written out"] == pytest.approx(2.0, abs=0.05)
    assert kept["scores, fast kernel"] == pytest.approx(1.0, abs=0.05)


def test_kept_bytes_counts_a_storage_once_and_nothing_that_was_given():
    layer = torch.nn.Linear(10, 10, bias=False)
    hidden = torch.randn(5, 10, requires_grad=True)
    assert kept_bytes(lambda: layer(hidden), layer.parameters()) == hidden.nbytes
    assert kept_bytes(lambda: layer(hidden), [*layer.parameters(), hidden]) == 0
    assert kept_bytes(lambda: layer(hidden).exp(), [*layer.parameters(), hidden]) == hidden.nbytes


def test_a_power_is_fitted_where_the_curve_is_long():
    lengths = [2, 4, 8, 16, 32]
    assert power(lengths, [n**2.0 for n in lengths]) == pytest.approx(2.0)
    assert power(lengths, [100.0, 100.0, 3 * 8**1.5, 3 * 16**1.5, 3 * 32**1.5]) == pytest.approx(1.5)


def test_measuring_gives_every_kind_at_every_length_and_its_growth():
    found = measure([8, 16, 32], width=8, heads=2, kernel=3)
    assert [(one.length, one.kind) for one in found] == [(n, kind.name) for n in (8, 16, 32) for kind in KINDS]
    assert all(isinstance(one, Measured) and one.seconds > 0 and one.kept_bytes > 0 for one in found)
    assert [one.kind for one in growth(found)] == [kind.name for kind in KINDS]


def test_a_crossing_is_between_two_lengths_or_on_one_side(monkeypatch):
    times = {"recurrence": lambda n: 10.0 * n, "self-attention": lambda n: 0.1 * n**2}  # they meet at n = 100

    def instead(kind):
        return kind._replace(build=lambda size: Pass(lambda: times[kind.name](size.length), ()))

    monkeypatch.setattr(layer_cost, "KINDS", [instead(kind) for kind in KINDS])
    monkeypatch.setattr(layer_cost, "best_seconds", lambda run, rounds: run())
    for width in (16, 128, 512):  # from n = d / 8 on
        assert find_crossing(width=width, heads=2, longest=4096).measured == pytest.approx(100)
    never = find_crossing(width=16, heads=2, longest=64)
    assert (never.measured, never.slower, never.longest) == (None, "recurrence", 64)
    always = find_crossing(width=1024, heads=2, longest=4096)
    assert (always.measured, always.slower, always.shortest) == (None, "self-attention", 128)


def test_a_matrix_too_large_is_not_written_out(monkeypatch):
    monkeypatch.setattr(layer_cost, "MAX_MATRIX_BYTES", 4 * 2 * 16**2)
    found = measure([16, 32], width=8, heads=2, kernel=3)
    assert [one.length for one in found if one.kind == "scores, written out"] == [16]
    assert [one.length for one in found if one.kind == "self-attention"] == [16, 32]
