"""Activations and their gradients are torch's."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.ops.activation import TORCH_ACTIVATIONS, activate
from tests.ops.forms import numbers


@pytest.mark.parametrize("name", TORCH_ACTIVATIONS)
@pytest.mark.parametrize("count", [1, 15, 16, 1000])
def test_activations_and_their_gradients_are_torchs(count, name):
    hidden = numbers(count) * 4
    hidden[0] = 60.0  # far out it is the identity
    outer = numbers(count, seed=1)
    one, other = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    found, wanted = activate(one, name), TORCH_ACTIVATIONS[name](other)
    assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    found.backward(outer)
    wanted.backward(outer)
    assert_close(one.grad, other.grad, atol=2e-6, rtol=1e-5)
    assert activate(torch.tensor([math.nan]), name).isnan().all()


@pytest.mark.parametrize("name", TORCH_ACTIVATIONS)
def test_other_dtypes_strides_and_empty_inputs(name):
    for hidden in (numbers(9, 7).t(), numbers(1, 7).expand(3, 7), numbers(4, 20)[:, ::3], numbers(0, 3)):
        assert_close(activate(hidden, name), TORCH_ACTIVATIONS[name](hidden), atol=1e-6, rtol=1e-5)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        hidden = numbers(5, 6).to(dtype)
        assert torch.equal(activate(hidden, name), TORCH_ACTIVATIONS[name](hidden))


@pytest.mark.parametrize("name", TORCH_ACTIVATIONS)
def test_the_gradient_of_a_sum_is_an_expanded_tensor(name):
    hidden = numbers(5, 6).requires_grad_()
    (found,) = torch.autograd.grad(activate(hidden, name).sum(), hidden)
    (wanted,) = torch.autograd.grad(TORCH_ACTIVATIONS[name](hidden).sum(), hidden)
    assert_close(found, wanted, atol=2e-6, rtol=1e-5)


def test_an_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="activation is 'tanh', wanted one of relu, swish"):
        activate(numbers(3), "tanh")
