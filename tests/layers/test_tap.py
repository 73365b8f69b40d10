"""Taps: invisible until watched; then they see, and may change, what passes."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.errors import InputError
from regard.inspection.capture import watch
from regard.layers.attention import MultiHeadAttention
from regard.layers.tap import Tap, taps


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = MultiHeadAttention(8, 2)
        self.second = MultiHeadAttention(8, 2)

    def forward(self, hidden):
        return self.second(self.first(hidden, hidden), hidden)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Two()


def test_a_taps_name_is_its_path(model):
    assert list(taps(model)) == ["first.weights", "second.weights"]
    assert all(isinstance(tap, Tap) for tap in taps(model).values())


def test_taps_leave_no_trace_in_what_is_saved(model):
    assert not [name for name in model.state_dict() if "weights" in name]


def test_watched_equals_unwatched_and_the_weights_are_those_used(model):
    hidden = torch.randn(2, 5, 8)
    plain = model(hidden)
    with watch(model, "*.weights") as seen:
        assert_close(model(hidden), plain)
    assert [value.shape for values in seen.values() for value in values] == [(2, 2, 5, 5)] * 2
    assert_close(seen["first.weights"][0].sum(-1), torch.ones(2, 2, 5))
    assert not any(tap.watched for tap in taps(model).values())


def test_a_watcher_may_put_another_value_in_place(model):
    hidden = torch.randn(1, 3, 8)
    model.first.weights.watcher = lambda weights: torch.eye(3).expand_as(weights)
    looking_at_itself = model.first(hidden, hidden)
    model.first.weights.watcher = None
    assert_close(looking_at_itself, model.first.output(model.first.value(hidden)))


def test_an_unknown_tap_is_named_with_the_nearest(model):
    with (
        pytest.raises(InputError, match=r"there is no tap first\.weight; the nearest is first\.weights"),
        watch(model, "first.weight"),
    ):
        pass


def test_a_tap_that_never_fires_is_named(model):
    with pytest.raises(InputError, match="second.weights was watched but"), watch(model, "second.weights"):
        model.first(torch.randn(1, 2, 8), torch.randn(1, 2, 8))


def test_an_error_inside_the_block_is_not_hidden_and_the_watch_ends(model):
    with pytest.raises(ZeroDivisionError), watch(model, "second.weights"):
        raise ZeroDivisionError
    assert not model.second.weights.watched


@torch.no_grad()
def test_taps_work_under_torch_compile(model):
    # "eager" runs the captured graphs without a C compiler: what is tested is that the capture follows the watching.
    compiled = torch.compile(model, backend="eager")
    hidden = torch.randn(2, 5, 8)
    plain = model(hidden)
    assert_close(compiled(hidden), plain)
    with watch(model, "first.weights") as seen:
        assert_close(compiled(hidden), plain)
    assert len(seen["first.weights"]) == 1
    assert_close(compiled(hidden), plain)
    assert len(seen["first.weights"]) == 1
