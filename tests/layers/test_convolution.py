"""Gated convolution, held against torch's."""

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.layers.convolution import GatedConvolution


def test_a_window_is_torchs_convolution_and_a_gate():
    torch.manual_seed(0)
    layer = GatedConvolution(5, kernel=3)
    torch.nn.init.normal_(layer.window.bias)
    hidden = torch.randn(2, 9, 5)
    kernel = layer.window.weight.view(10, 3, 5).transpose(1, 2)  # (out, in, place)
    wanted = F.glu(F.conv1d(hidden.transpose(1, 2), kernel, layer.window.bias), dim=1).transpose(1, 2)
    assert_close(layer(hidden), wanted)
    assert layer(hidden).shape == (2, 7, 5)


def test_variance_comes_through_about_as_it_went_in():
    torch.manual_seed(0)
    hidden = torch.randn(4, 200, 64)
    assert 0.5 < GatedConvolution(64, kernel=3)(hidden).var() < 2.0
