"""Linear layers: the ways without gradients give what torch's own gives."""

import pytest
import torch
from torch.testing import assert_close

from regard.layers.linear import FEW, Linear


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (FEW + 1,), (2, 3), (2, 0), (0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_without_gradients_the_result_is_the_same(shape, bias):
    layer, hidden = Linear(6, 4, bias=bias), torch.randn(*shape, 6)
    with torch.no_grad():
        found = layer(hidden)
    assert_close(found, torch.nn.functional.linear(hidden, layer.weight, layer.bias))
