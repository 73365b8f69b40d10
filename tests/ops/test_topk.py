"""Top-k, argmax and logsumexp: torch's, in either memory layout."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard import ops
from regard.ops.topk import argmax, has_contiguous_columns, logsumexp, topk
from tests.ops.forms import numbers

pytestmark = pytest.mark.usefixtures("no_grad")


@settings(deadline=None, max_examples=60)
@given(rows=st.integers(1, 5), size=st.integers(1, 300), k=st.integers(1, 9), scale=st.sampled_from([0.1, 5, 500]))
def test_top_k_and_logsumexp_are_torchs(rows, size, k, scale):
    logits = numbers(rows, size) * scale
    assert_close(logsumexp(logits), logits.logsumexp(-1), atol=1e-5, rtol=1e-5)
    values, indices = topk(logits, min(k, size))
    wanted = logits.topk(min(k, size))
    assert torch.equal(values, wanted.values)
    assert torch.equal(logits.gather(1, indices), wanted.values)
    assert all(len(set(row)) == len(row) for row in indices.tolist())
    assert torch.equal(argmax(logits), logits.argmax(-1))


def test_of_equal_logits_the_first_and_minus_infinity_last():
    logits = torch.zeros(2, 40)
    logits[1, :38] = -math.inf
    values, indices = topk(logits, 3)
    assert len(set(indices[0].tolist())) == 3
    assert set(indices[1, :2].tolist()) == {38, 39}
    assert values[1].tolist() == [0.0, 0.0, -math.inf]
    assert_close(logsumexp(logits), torch.tensor([math.log(40), math.log(2)]))


@pytest.mark.parametrize("damage", [math.nan, math.inf])
def test_damage_stays_visible_in_logsumexp(damage):
    for column in (0, 5, 39):
        logits = torch.zeros(2, 40)
        logits[1, column] = damage
        assert logsumexp(logits).isfinite().tolist() == [True, False]


def test_nan_is_above_all_as_in_torch():
    for column in (0, 20, 39):
        logits = numbers(1, 40)
        logits[0, column] = math.nan
        assert topk(logits, 3)[1][0, 0] == column
        assert argmax(logits).item() == column


def test_k_has_a_range():
    for k in (-1, 5):
        with pytest.raises(ValueError, match=f"k is {k}, wanted 0 to 3"):
            topk(numbers(2, 3), k)
    for logits in (numbers(2, 3), numbers(0, 8), numbers(3, 2).t()):
        values, indices = topk(logits, 0)
        assert values.shape == indices.shape == (len(logits), 0)
    assert topk(torch.zeros(0, 8), 2)[0].shape == (0, 2)


def test_logits_are_a_matrix():
    for function in (argmax, logsumexp, lambda logits: topk(logits, 1)):
        for wrong in (numbers(4), numbers(2, 3, 4)):
            with pytest.raises(ValueError, match=r"wanted \(B, V\)"):
                function(wrong)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("in_columns", [False, True])
def test_other_dtypes_take_the_torch_form(dtype, in_columns):
    logits = numbers(4, 700).to(dtype)
    logits = logits.t().contiguous().t() if in_columns else logits
    assert torch.equal(argmax(logits), logits.argmax(-1))
    assert torch.equal(topk(logits, 3)[0], logits.topk(3).values)
    assert_close(logsumexp(logits), logits.logsumexp(-1))


def test_strided_and_expanded_rows_are_read_as_they_are():
    for logits in (numbers(4, 2000)[:, ::2], numbers(8, 100)[::2], numbers(1, 100).expand(5, 100), numbers(4, 9).t()):
        assert torch.equal(topk(logits, 3)[0], logits.topk(3).values)
        assert torch.equal(argmax(logits), logits.argmax(-1))
        assert_close(logsumexp(logits), logits.logsumexp(-1))


@pytest.mark.parametrize("is_disabled", [False, True])
@pytest.mark.parametrize("size", [50, 4096, 5000])
def test_either_layout_gives_the_same(size, is_disabled):
    logits = numbers(5, size)
    columns = logits.t().contiguous().t()
    assert has_contiguous_columns(columns)
    assert not has_contiguous_columns(logits)
    if is_disabled:
        with ops.disabled():
            found = [argmax(columns), argmax(logits), logsumexp(columns), topk(columns, 4), topk(logits, 4)]
    else:
        found = [argmax(columns), argmax(logits), logsumexp(columns), topk(columns, 4), topk(logits, 4)]
    assert torch.equal(found[0], logits.argmax(-1))
    assert torch.equal(found[1], logits.argmax(-1))
    assert_close(found[2], logits.logsumexp(-1))
    for values, indices in found[3:]:
        assert torch.equal(values, logits.topk(4).values)
        assert torch.equal(indices, logits.topk(4).indices)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 8), blocks=st.integers(1, 60))
def test_top_k_by_blocks_is_topk(seed, k, blocks):
    values = torch.randn(3, blocks * 128, generator=torch.Generator().manual_seed(seed))
    best, place = topk(values, k)
    wanted, wanted_place = values.topk(k, dim=-1)
    assert torch.equal(best, wanted)
    assert torch.equal(place, wanted_place)


@pytest.mark.parametrize("size", [7, 1024, 5000, 8192])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_same_in_rows_and_in_columns(size, rows):
    torch.manual_seed(size)
    values = torch.randn(rows, size)
    values[:, size // 3] = -torch.inf
    columns = values.t().contiguous().t()
    assert has_contiguous_columns(columns) == (rows > 1)
    assert not has_contiguous_columns(values)
    for layout in (values, columns):
        assert torch.equal(argmax(layout), values.argmax(-1))
        assert_close(logsumexp(layout), values.logsumexp(-1))
        best, places = topk(layout, 5)
        assert torch.equal(best, values.topk(5).values)
        assert torch.equal(values.gather(1, places), best)


def test_of_two_equal_logits_the_first_in_columns():
    values = torch.zeros(2, 3000)
    values[:, [1500, 2999]] = 1.0
    assert argmax(values.t().contiguous().t()).tolist() == [1500, 1500]
