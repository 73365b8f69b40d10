"""The layer norm of a residual sum is torch's."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard import ops
from regard.layers.norm import LayerNorm
from regard.ops.norm import add_layer_norm
from tests.ops.forms import num_threads, numbers

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 5, 16), (4, 33), (64, 512)])
def test_a_norm_of_a_sum_is_torchs(shape, threads):
    hidden, update = numbers(*shape) * 3 + 100, numbers(*shape, seed=1)
    weight, bias = numbers(shape[-1], seed=2), numbers(shape[-1], seed=3)
    with num_threads(threads):
        found = add_layer_norm(hidden, update, weight, bias, 1e-5)
    exact = F.layer_norm((hidden + update).double(), weight.shape, weight.double(), bias.double(), 1e-5)
    assert_close(found, exact.float(), atol=1e-4, rtol=1e-4)
    layer = LayerNorm(shape[-1])
    layer.weight.copy_(weight), layer.bias.copy_(bias)
    assert torch.equal(layer(hidden, update), found)
    with ops.disabled():
        assert_close(layer(hidden, update), layer(hidden + update), atol=0, rtol=0)


@pytest.mark.parametrize("damage", [math.nan, math.inf])
def test_damage_stays_in_its_row(damage):
    hidden, update = numbers(3, 20), numbers(3, 20, seed=1)
    update[1, 19] = damage
    found = add_layer_norm(hidden, update, torch.ones(20), torch.zeros(20), 1e-5)
    assert found[1].isnan().all()
    assert found[[0, 2]].isfinite().all()


def test_what_c_does_not_cover_goes_to_torch():
    weight, bias = numbers(8, seed=2), numbers(8, seed=3)

    def both(hidden, update, weight=weight, bias=bias):
        wanted = F.layer_norm(hidden + update, (8,), weight, bias, 1e-5)
        assert_close(add_layer_norm(hidden, update, weight, bias, 1e-5), wanted, atol=1e-5, rtol=1e-5)

    both(numbers(5, 8), numbers(8, seed=1))  # torch broadcasts the update
    both(numbers(8, 5).t(), numbers(5, 16, seed=1)[:, ::2])
    both(numbers(5, 8), numbers(1, 8, seed=1).expand(5, 8))
    both(numbers(5, 8), numbers(5, 8, seed=1), None, None)
    both(numbers(0, 8), numbers(0, 8))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        both(*(part.to(dtype) for part in (numbers(5, 8), numbers(5, 8, seed=1), weight, bias)))
    with torch.enable_grad():
        hidden = numbers(5, 8).requires_grad_()
        assert add_layer_norm(hidden, hidden, weight, bias, 1e-5).requires_grad
    with pytest.raises(RuntimeError):
        add_layer_norm(numbers(5, 8), numbers(5, 8), weight[:4], bias[:4], 1e-5)
    assert LayerNorm(8, elementwise_affine=False)(numbers(5, 8), numbers(5, 8)).isfinite().all()
