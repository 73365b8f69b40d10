"""Dropout: the right share, the same places both ways, by chance that is torch's and nothing else's."""

import pytest
import torch
from torch.testing import assert_close

from regard import kernels
from regard.layers.dropout import Dropout


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_so_many_are_left_out_and_the_others_made_larger(share, plain):
    torch.manual_seed(0)
    hidden = torch.ones(400, 501)
    if plain:
        with kernels.left_out():
            found = Dropout(share)(hidden)
    else:
        found = Dropout(share)(hidden)
    left_out = (found == 0).double()
    deviation = (share * (1 - share) / hidden.numel()) ** 0.5
    assert abs(left_out.mean().item() - share) < 4 * deviation
    assert_close(found[found != 0], torch.full_like(found[found != 0], 1 / (1 - share)))
    for one, other in ((left_out[:, 1:], left_out[:, :-1]), (left_out[1:], left_out[:-1])):  # neighbors do not know it
        assert abs(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1]) < 4 / 400_000**0.5 * 2


def test_the_gradient_takes_the_same_places():
    torch.manual_seed(1)
    hidden = torch.randn(37, 19, requires_grad=True)
    found = Dropout(0.3)(hidden)
    found.backward(torch.ones_like(found))
    assert torch.equal(hidden.grad == 0, found == 0)
    assert_close(hidden.grad[found != 0], torch.full_like(found[found != 0], 1 / 0.7))


def test_chance_is_torchs():
    hidden, layer = torch.ones(20, 30), Dropout(0.5)
    torch.manual_seed(5)
    first, second = layer(hidden), layer(hidden)
    torch.manual_seed(5)
    assert torch.equal(layer(hidden), first)
    assert not torch.equal(first, second)
    share = ((first == 0) & (second == 0)).float().mean().item()  # two draws do not know of each other
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / 600) ** 0.5


def test_without_training_and_without_a_share_nothing_happens():
    hidden = torch.ones(3, 4)
    assert torch.equal(Dropout(0.5).eval()(hidden), hidden)
    assert torch.equal(Dropout(0.0)(hidden), hidden)
    assert not Dropout(1.0)(hidden).any()
