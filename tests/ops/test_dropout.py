"""Dropout: the right share, the same positions forward and backward, drawn from torch's generator."""

from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close

from regard import ops
from regard.layers.dropout import Dropout
from regard.ops.dropout import Rows, dropout, dropout_with_seeds, rows_of_batch


@pytest.mark.parametrize("is_disabled", [True, False])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_dropped_and_the_rest_scaled_up(share, is_disabled):
    torch.manual_seed(0)
    hidden = torch.ones(400, 501)
    if is_disabled:
        with ops.disabled():
            found = Dropout(share)(hidden)
    else:
        found = Dropout(share)(hidden)
    dropped = (found == 0).double()
    deviation = (share * (1 - share) / hidden.numel()) ** 0.5
    assert abs(dropped.mean().item() - share) < 4 * deviation
    assert_close(found[found != 0], torch.full_like(found[found != 0], 1 / (1 - share)))
    for one, other in ((dropped[:, 1:], dropped[:, :-1]), (dropped[1:], dropped[:-1])):  # neighbors are independent
        assert abs(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1]) < 4 / 400_000**0.5 * 2


def test_the_gradient_drops_the_same_positions():
    torch.manual_seed(1)
    hidden = torch.randn(37, 19, requires_grad=True)
    found = Dropout(0.3)(hidden)
    found.backward(torch.ones_like(found))
    assert torch.equal(hidden.grad == 0, found == 0)
    assert_close(hidden.grad[found != 0], torch.full_like(found[found != 0], 1 / 0.7))


def test_the_draw_is_torchs():
    hidden, layer = torch.ones(20, 30), Dropout(0.5)
    torch.manual_seed(5)
    first, second = layer(hidden), layer(hidden)
    torch.manual_seed(5)
    assert torch.equal(layer(hidden), first)
    assert not torch.equal(first, second)
    share = ((first == 0) & (second == 0)).float().mean().item()  # two draws are independent
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / 600) ** 0.5


def test_without_training_and_without_a_share_nothing_happens():
    hidden = torch.ones(3, 4)
    assert torch.equal(Dropout(0.5).eval()(hidden), hidden)
    assert torch.equal(Dropout(0.0)(hidden), hidden)
    assert not Dropout(1.0)(hidden).any()


def test_other_dtypes_and_strides():
    torch.manual_seed(2)
    for hidden in (torch.ones(9, 7).t(), torch.ones(1, 7).expand(30, 7), torch.ones(4, 20)[:, ::3], torch.ones(0, 3)):
        found = dropout(hidden, 0.5)
        assert found.shape == hidden.shape
        assert set(found.flatten().tolist()) <= {0.0, 2.0}
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert dropout(torch.ones(5, 6, dtype=dtype), 0.5).dtype is dtype
    with pytest.raises(ValueError, match="wanted float32 on the CPU"):
        dropout_with_seeds(torch.ones(3).double(), 0.5, [1, 2])


@pytest.mark.parametrize("is_disabled", [True, False])
def test_some_rows_of_a_batch_drop_what_they_drop_in_the_whole_batch(is_disabled):
    hidden = torch.randn(7, 5, 3, requires_grad=True)
    with ops.disabled() if is_disabled else nullcontext():
        torch.manual_seed(3)
        whole = dropout(hidden, 0.4)
        (whole_gradient,) = torch.autograd.grad(whole.square().sum(), hidden)
        for first, stop in ((0, 3), (3, 7), (6, 7)):
            torch.manual_seed(3)
            with rows_of_batch(Rows(first, stop - first, 7)):
                some = dropout(hidden[first:stop], 0.4)
            (gradient,) = torch.autograd.grad(some.square().sum(), hidden)
            assert torch.equal(some, whole[first:stop])
            assert torch.equal(gradient[first:stop], whole_gradient[first:stop])
    with rows_of_batch(Rows(0, 3, 7)), pytest.raises(AssertionError, match="wanted 3 rows"):
        dropout(hidden, 0.4)
