"""The exact shortlist: always the id of the largest logit."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import ops
from regard.ops.shortlist import ArgmaxShortlist, argmax_in_torch
from tests.ops.forms import needs_int8, num_threads, numbers

pytestmark = [needs_int8, pytest.mark.usefixtures("no_grad")]


@settings(deadline=None, max_examples=60)
@given(
    batch=st.integers(1, 70),
    rows=st.integers(1, 400),
    inner=st.integers(1, 300),
    biased=st.booleans(),
    spread=st.sampled_from([0.0, 1.0, 3.0]),  # of the columns: rows with few very large numbers
    threads=st.integers(1, 3),
)
def test_it_finds_the_largest_logit(batch, rows, inner, biased, spread, threads):
    x = numbers(batch, inner) * numbers(inner, seed=5).mul(spread).exp()
    weight, bias = numbers(rows, inner, seed=1), numbers(rows, seed=2) if biased else None
    with num_threads(threads):
        shortlist = ArgmaxShortlist(weight, bias)
        found = shortlist.argmax(x)
        errors = torch.full_like(shortlist._rows.errors, 1e30)
        shortlist._rows = replace(shortlist._rows, errors=errors)  # excludes nothing
        assert torch.equal(found, shortlist.argmax(x))
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    best, chosen = exact.amax(-1), exact.gather(1, found[:, None])[:, 0]
    rounding = 1e-6 * inner * x.abs().amax(-1) * weight.abs().max()  # of float32, where two are as good as equal
    assert (best - chosen <= rounding).all()


def test_of_equal_ids_the_first_and_no_banned_one():
    weight = numbers(3000, 512, seed=1)
    weight[[700, 2000, 2999]] = weight[11] * 5
    x = weight[11].expand(20, -1) + 0.1 * numbers(20, 512)
    shortlist = ArgmaxShortlist(weight)
    assert shortlist.argmax(x).tolist() == [700] * 20
    assert shortlist.argmax(x, frozenset([5, 700])).tolist() == [2000] * 20
    for banned in ([], [700, 2000, 2999], range(100, 3000)):
        assert torch.equal(shortlist.argmax(x, frozenset(banned)), argmax_in_torch(x, weight, None, banned))
    with ops.disabled():
        assert shortlist.argmax(x, frozenset([5, 700])).tolist() == [2000] * 20


@pytest.mark.parametrize("inner", [1024, 2048, 4096])
def test_margins_hold_where_all_rounding_goes_one_way(inner):
    x, weight, bias = torch.full((12, inner), 24.51), torch.zeros(40, inner), torch.zeros(40)
    x[:, 0], x[:, 1] = 127, 0
    weight[0], weight[0, 0], weight[0, 1] = 60.51, 0, 127
    weight[30] = -weight[0]
    bias[30] = 2 * (x[0].double() @ weight[0].double()) + 300
    wanted = F.linear(x.double(), weight.double(), bias.double()).argmax(-1)
    assert torch.equal(ArgmaxShortlist(weight, bias).argmax(x), wanted)


def test_margins_hold_for_tiny_inputs_and_large_biases():
    x, weight = numbers(40, 512), numbers(3000, 512, seed=1)
    tiny = x * 1e-25
    assert torch.equal(ArgmaxShortlist(weight).argmax(tiny), argmax_in_torch(tiny, weight, None))
    whole, bias = weight.mul(40).clamp(-127, 127).round(), torch.full((3000,), 1e6) + numbers(3000, seed=2).round()
    whole[:, 0] = 127
    found = ArgmaxShortlist(whole, bias).argmax(x.round())
    exact = F.linear(x.round().double(), whole.double(), bias.double())
    assert (exact.amax(-1) - exact.gather(1, found[:, None])[:, 0] <= 0.5).all()  # half a unit of a million in float32


def test_inputs_that_do_not_match_are_refused():
    shortlist = ArgmaxShortlist(numbers(300, 120))
    for wrong in (numbers(4, 128), numbers(4, 100), numbers(4, 120).bfloat16(), numbers(2, 2, 120)):
        with pytest.raises(ValueError, match="hidden is .*, wanted"):
            shortlist.argmax(wrong)
    with pytest.raises(ValueError, match=r"bias is \(299,\)"):
        ArgmaxShortlist(numbers(300, 120), numbers(299))
    with pytest.raises(ValueError, match="wanted float32"):
        ArgmaxShortlist(numbers(300, 120).double())
    with pytest.raises(IndexError):
        shortlist.argmax(numbers(4, 120), frozenset([300]))


def test_strided_inputs_and_weights_are_read_as_they_are():
    weight, x = numbers(120, 300).t(), numbers(240, 9).t()[:, ::2]
    assert torch.equal(ArgmaxShortlist(weight).argmax(x), argmax_in_torch(x, weight, None))


def test_a_row_that_is_not_finite_has_no_argmax_and_harms_no_other():
    weight, x = numbers(500, 96, seed=1), numbers(12, 96)
    wanted = argmax_in_torch(x, weight, None)
    x[3, 5], x[9, 0] = math.nan, math.inf
    shortlist = ArgmaxShortlist(weight)
    with ops.disabled():
        in_torch = shortlist.argmax(x)
    for found in (shortlist.argmax(x), in_torch):
        assert found[[3, 9]].tolist() == [-1, -1]
        others = [row for row in range(12) if row not in (3, 9)]
        assert torch.equal(found[others], wanted[others])


def test_there_is_none_for_damaged_small_or_other_weights():
    large = numbers(5000, 256)
    assert ArgmaxShortlist.build(large) is not None
    assert ArgmaxShortlist.build(large[:100]) is None
    assert ArgmaxShortlist.build(large.half()) is None
    large[4, 4] = math.nan
    assert ArgmaxShortlist.build(large) is None
    with ops.disabled():
        assert ArgmaxShortlist.build(numbers(5000, 256)) is None
