"""Int8 products: those of the rounded matrix, each row for itself."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.layers.linear import Linear
from regard.layers.quantized import QuantizedLinear
from regard.ops.quantized import linear_int8, quantize_rows
from tests.ops.forms import needs_int8, numbers

pytestmark = [needs_int8, pytest.mark.usefixtures("no_grad")]


@settings(deadline=None, max_examples=60)
@given(batch=st.integers(1, 70), rows=st.integers(1, 50), inner=st.integers(1, 2100), biased=st.booleans())
def test_a_product_is_that_of_the_rounded_matrix(batch, rows, inner, biased):
    x, weight, bias = numbers(batch, inner), numbers(rows, inner, seed=1), numbers(rows, seed=2) if biased else None
    matrix = quantize_rows(weight)
    rounded = matrix.rows[:, :inner].double() * matrix.scales[:, None]
    exact = F.linear(x.double(), rounded, None if bias is None else bias.double())
    found = linear_int8(x, matrix, bias)
    # Rounding the matrix itself costs ten times that.
    assert (found - exact).abs().max() <= 8e-4 * math.sqrt(inner) + 1e-4
    alone = torch.cat([linear_int8(row[None], matrix, bias) for row in x])
    assert torch.equal(found, alone), "a row's result depends on the rows beside it"


def test_sums_of_the_largest_numbers_do_not_overflow():
    inner = 16384
    matrix = quantize_rows(torch.ones(3, inner))
    for batch in (1, 20):
        found = linear_int8(torch.full((batch, inner), -7.0), matrix)
        assert_close(found, torch.full((batch, 3), -7.0 * inner), rtol=1e-3, atol=0)


def test_a_rounded_matrix_has_its_errors():
    weight = numbers(50, 130) * numbers(50, 1, seed=3).exp()
    matrix = quantize_rows(weight)
    assert matrix.rows.shape == (50, 192)
    assert matrix.rows[:, 130:].eq(0).all()
    left = weight - matrix.scales[:, None] * matrix.rows[:, :130]
    assert (left.abs() <= matrix.scales[:, None] * 0.5001).all()
    assert_close(matrix.errors, left.norm(dim=1), rtol=1e-4, atol=0)
    assert_close(matrix.norms, weight.norm(dim=1), rtol=1e-5, atol=0)
    assert torch.equal(matrix.sums, matrix.rows.sum(1, dtype=torch.int32))


@pytest.mark.parametrize("damage", [math.nan, math.inf])
def test_damaged_weights_stay_visible(damage):
    layer, x = Linear(64, 9), numbers(3, 64)
    layer.weight[2, 5] = damage
    assert not QuantizedLinear(layer)(x)[:, 2].isfinite().any()


@pytest.mark.parametrize("damage", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("batch", [1, 5, 20])
def test_damage_stays_in_its_row(damage, batch):
    x, weight = numbers(batch, 64), numbers(9, 64, seed=1)
    x[-1, 3] = damage
    found = linear_int8(x, quantize_rows(weight))
    assert not found[-1].isfinite().any()
    assert found[:-1].isfinite().all()


def test_other_dtypes_and_strides_are_converted():
    x, matrix = numbers(20, 64), quantize_rows(numbers(9, 64, seed=1))
    wanted = linear_int8(x, matrix)
    assert_close(linear_int8(x.double(), matrix), wanted)
    assert torch.equal(linear_int8(x.t().contiguous().t(), matrix), wanted)
    for dtype in (torch.bfloat16, torch.float16):
        assert_close(linear_int8(x.to(dtype), matrix), wanted, atol=0.2, rtol=0.05)
    assert torch.equal(quantize_rows(numbers(64, 9).t()).rows, quantize_rows(numbers(64, 9).t().contiguous()).rows)


def test_what_does_not_match_is_refused():
    matrix = quantize_rows(numbers(9, 64))
    for width in (20, 63, 65, 1024):
        with pytest.raises(ValueError, match=rf"hidden is \(20, {width}\) on cpu, wanted"):
            linear_int8(torch.ones(20, width), matrix)
    with pytest.raises(ValueError, match=r"bias is \(8,\)"):
        linear_int8(torch.ones(20, 64), matrix, torch.ones(8))
    with pytest.raises(ValueError, match="wanted"):
        quantize_rows(torch.ones(3))
    with pytest.raises(ValueError, match="torch.float64"):
        replace(matrix, scales=matrix.scales.double())
    with pytest.raises(ValueError, match=r"\(9,\), wanted torch.int32 \(8,\)"):
        replace(matrix, rows=matrix.rows[:8])
