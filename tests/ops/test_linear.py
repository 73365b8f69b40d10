"""Linear: every form gives torch's product, whatever the shapes and the layout."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard import ops
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.linear import Linear, fused_qkv, linear_then_activation
from regard.ops.activation import TORCH_ACTIVATIONS
from regard.ops.linear import MAX_TRANSPOSED_ROWS, MIN_ROWS, fused_linears, linear, logits
from tests.ops.forms import needs_kernels, num_threads, numbers

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (MAX_TRANSPOSED_ROWS + 1,), (2, 3), (2, 0), (0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_without_gradients_the_result_is_the_same(shape, bias):
    layer, hidden = Linear(6, 4, bias=bias), torch.randn(*shape, 6)
    assert_close(layer(hidden), F.linear(hidden, layer.weight, layer.bias))


@settings(deadline=None, max_examples=60)
@given(
    batch=st.integers(1, 90),
    rows=st.integers(1, 70),
    inner=st.integers(1, 1100),
    biased=st.booleans(),
    threads=st.sampled_from([1, 2, 3, 5]),
)
def test_a_product_is_torchs(batch, rows, inner, biased, threads):
    x, weight, bias = numbers(batch, inner), numbers(rows, inner, seed=1), numbers(rows, seed=2) if biased else None
    wanted = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    with num_threads(threads):
        for found in (linear(x, weight, bias), logits(x, weight, bias)):
            assert (found - wanted).abs().max() <= 4e-6 * math.sqrt(inner) * 4


@needs_kernels
@settings(deadline=None, max_examples=40)
@given(
    batch=st.integers(MIN_ROWS, 700),
    rows=st.integers(1, 60),
    inner=st.integers(1, 80),
    parts=st.integers(1, 3),
    activation=st.sampled_from([None, *TORCH_ACTIVATIONS]),
    threads=st.integers(1, 3),
)
def test_matrices_side_by_side_and_an_activation_are_torchs(batch, rows, inner, parts, activation, threads):
    x = numbers(batch, inner)
    weights = [numbers(rows, inner, seed=part) for part in range(parts)]
    biases = [None if part == 1 else numbers(rows, seed=10 + part) for part in range(parts)]
    with num_threads(threads):
        found = fused_linears(x, weights, biases, activation)
    wanted = torch.cat([F.linear(x, *each) for each in zip(weights, biases, strict=True)], dim=-1)
    assert_close(found, wanted if activation is None else TORCH_ACTIVATIONS[activation](wanted), atol=2e-5, rtol=1e-5)


def test_layers_in_one_pass_are_the_layers_one_by_one():
    hidden, layers = numbers(3, 5, 32), [Linear(32, 48) for _ in range(3)]
    apart = [F.linear(hidden, layer.weight, layer.bias) for layer in layers]
    for found, wanted in zip(fused_qkv(hidden, *layers), apart, strict=True):
        assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    found = linear_then_activation(hidden, layers[0], ACTIVATIONS["gelu"])
    assert_close(found, F.gelu(apart[0]), atol=1e-5, rtol=1e-5)


def test_a_hook_gets_its_layers_output_where_layers_are_computed_in_one_pass():
    hidden, layers, seen = numbers(9, 32), [Linear(32, 32) for _ in range(2)], []
    before = fused_qkv(hidden, *layers)
    layers[1].register_forward_hook(lambda layer, given, out: seen.append(out))
    found = fused_qkv(hidden, *layers)
    assert torch.equal(seen[0], found[1])
    assert_close(torch.cat(found), torch.cat(before), atol=1e-6, rtol=1e-5)


def test_a_large_matrix_and_leading_dimensions():
    x, weight, bias = numbers(3, 11, 520), numbers(2049, 520, seed=1), numbers(2049, seed=2)
    assert_close(linear(x, weight, bias), F.linear(x, weight, bias), atol=1e-4, rtol=1e-5)
    assert_close(linear(x[:1, :1], weight, bias), F.linear(x[:1, :1], weight, bias), atol=1e-4, rtol=1e-5)
    transposed = numbers(520, 33).t()  # not contiguous
    assert_close(linear(transposed, weight), F.linear(transposed, weight), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 20, 200])
def test_transposed_weights_and_strided_rows_are_torchs(rows):
    weight = numbers(32, 24).t()  # (24, 32), columns contiguous
    for x in (numbers(rows, 64)[:, ::2], numbers(1, 32).expand(rows, 32)):
        assert_close(linear(x, weight), F.linear(x, weight), atol=1e-5, rtol=1e-5)
        assert_close(logits(x, weight), F.linear(x, weight), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 5, 20, 200])
def test_other_dtypes_take_the_torch_form(dtype, rows):
    x, weight, bias = numbers(rows, 32).to(dtype), numbers(24, 32, seed=1).to(dtype), numbers(24, seed=2).to(dtype)
    assert fused_linears(x, [weight], [bias]) is None
    wanted = F.linear(x.double(), weight.double(), bias.double())
    for found in (linear(x, weight, bias), logits(x, weight, bias)):
        assert found.dtype is dtype
        assert_close(found.double(), wanted, atol=0.2, rtol=0.05)


@needs_kernels
def test_gradients_tracing_and_disabled_kernels_take_the_torch_form(monkeypatch):
    x, weight = numbers(20, 32), numbers(24, 32, seed=1)
    assert fused_linears(x, [weight], [None]) is not None
    with ops.disabled():
        assert fused_linears(x, [weight], [None]) is None
    with torch.enable_grad():
        assert fused_linears(x, [weight], [None]) is None
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert fused_linears(x, [weight], [None]) is None
    monkeypatch.undo()
    monkeypatch.setattr(torch.jit, "is_tracing", lambda: True)
    assert fused_linears(x, [weight], [None]) is None


def test_widths_that_do_not_match_are_torchs_error():
    layer = Linear(64, 4)
    for width in (20, 256, 1024):
        for form in (layer, lambda x: logits(x, layer.weight)):
            with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
                form(torch.ones(20, width))
        assert fused_linears(torch.ones(20, width), [layer.weight], [None]) is None
    assert fused_linears(torch.ones(20, 64), [layer.weight, torch.ones(5, 64)], [None, None]) is None


def test_a_bias_may_lie_anywhere_but_has_its_length_and_dtype():
    x, weight, every = numbers(20, 8), numbers(4, 8, seed=1), numbers(8, seed=2)
    assert_close(linear(x, weight, every[::2]), F.linear(x, weight, every[::2]))
    assert_close(linear(x, weight, every[:1]), F.linear(x, weight, every[:1]))  # torch broadcasts it
    with pytest.raises(RuntimeError):
        linear(x, weight, every[:3])
    with pytest.raises(RuntimeError):
        linear(x, weight, every[:4].double())


@pytest.mark.parametrize("damage", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rows", [2, 5, 20])
def test_damage_stays_in_its_row(damage, rows):
    x, weight = numbers(rows, 64), numbers(9, 64, seed=1)
    x[-1, 3] = damage
    found = linear(x, weight)
    assert not found[-1].isfinite().any()
    assert found[:-1].isfinite().all()


def test_empty_inputs_give_empty_outputs():
    assert linear(torch.zeros(0, 8), torch.ones(4, 8)).shape == (0, 4)
    assert linear(torch.zeros(20, 0), torch.ones(4, 0)).tolist() == [[0.0] * 4] * 20
