"""The start of a language model's weights, with numbers."""

import pytest
import torch
from torch import nn

from regard.layers.feed_forward import FeedForward
from regard.layers.initializing import fan_in_normal, small_normal


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(100)
        self.feed_forward = FeedForward(100, 400, "relu")


def test_what_a_block_adds_is_smaller_the_deeper_the_model():
    torch.manual_seed(1)
    model = Model()
    nn.init.ones_(model.feed_forward.contract.bias)
    small_normal(model, layers=8)
    assert model.feed_forward.expand.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert model.feed_forward.contract.weight.std().item() == pytest.approx(0.02 / 4, rel=0.02)
    assert not model.feed_forward.contract.bias.any()
    assert (model.norm.weight == 1).all()


def test_on_the_meta_device_nothing_is_drawn():
    before = torch.get_rng_state()
    with torch.device("meta"):
        model = Model()
    small_normal(model, layers=8)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), before)


def test_what_comes_out_of_a_matrix_is_as_large_as_what_goes_in():
    torch.manual_seed(1)
    model = Model()
    nn.init.ones_(model.feed_forward.contract.bias)
    fan_in_normal(model)
    hidden = torch.randn(50, 100)
    wide = model.feed_forward.expand(hidden)
    assert wide.std().item() == pytest.approx(1, rel=0.05)
    assert (model.feed_forward.contract(wide)).std().item() == pytest.approx(1, rel=0.05)
    assert not model.feed_forward.contract.bias.any()
    assert (model.norm.weight == 1).all()
