"""Taps: invisible until watched; then they see, and may change, what passes."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.errors import InputError
from regard.inspection.capture import capture
from regard.layers.attention import MultiHeadAttention
from regard.layers.tap import Tap, is_watching, taps


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
    names = ["queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "weights", "head_outputs"]
    names += ["inputs", "memory"]
    assert list(taps(model)) == [f"{part}.{name}" for part in ("first", "second") for name in names]
    assert all(isinstance(tap, Tap) for tap in taps(model).values())


def test_taps_leave_no_trace_in_what_is_saved(model):
    assert not [name for name in model.state_dict() if "weights" in name]


def test_watched_equals_unwatched_and_the_weights_are_those_used(model):
    hidden = torch.randn(2, 5, 8)
    plain = model(hidden)
    with capture(model, "*.weights") as seen:
        assert_close(model(hidden), plain)
    assert [value.shape for values in seen.values() for value in values] == [(2, 2, 5, 5)] * 2
    assert_close(seen["first.weights"][0].sum(-1), torch.ones(2, 2, 5))
    assert not any(tap.watched for tap in taps(model).values())


def test_a_watcher_may_put_another_value_in_place(model):
    hidden = torch.randn(1, 3, 8)
    stop = model.first.weights.watch(lambda weights: torch.eye(3).expand_as(weights))
    looking_at_itself = model.first(hidden, hidden)
    stop()
    assert_close(looking_at_itself, model.first.output(model.first.value(hidden)))


def test_an_unknown_tap_is_named_with_the_nearest(model):
    with (
        pytest.raises(InputError, match=r"there is no first\.weight in this model; the nearest are first\.weights"),
        capture(model, "first.weight"),
    ):
        pass


def test_a_tap_that_never_fires_is_named(model):
    with pytest.raises(InputError, match="second.weights was captured but"), capture(model, "second.weights"):
        model.first(torch.randn(1, 2, 8), torch.randn(1, 2, 8))


def test_an_error_inside_the_block_is_not_hidden_and_the_watch_ends(model):
    with pytest.raises(ZeroDivisionError), capture(model, "second.weights"):
        raise ZeroDivisionError
    assert not model.second.weights.watched


@torch.no_grad()
def test_taps_work_under_torch_compile(model):
    # "eager" runs the captured graphs without a C compiler: what is tested is that the capture follows the watching.
    compiled = torch.compile(model, backend="eager")
    hidden = torch.randn(2, 5, 8)
    plain = model(hidden)
    assert_close(compiled(hidden), plain)
    with capture(model, "first.weights") as seen:
        assert_close(compiled(hidden), plain)
    assert len(seen["first.weights"]) == 1
    assert_close(compiled(hidden), plain)
    assert len(seen["first.weights"]) == 1


def test_every_step_of_attention_is_captured_with_the_numbers_of_the_formula(model):
    hidden = torch.randn(1, 4, 8)
    with capture(model, "first.*") as seen:
        found = model.first(hidden, hidden)
    step = {path.removeprefix("first."): values[0] for path, values in seen.items()}
    assert_close(step["scores"], step["queries"] @ step["keys"].transpose(-2, -1))
    assert_close(step["scaled_scores"], step["scores"] / step["queries"].shape[-1] ** 0.5)
    assert_close(step["weights"], step["masked_scores"].softmax(-1))
    assert_close(step["head_outputs"], step["weights"] @ step["values"])
    assert_close(model.first.output(step["head_outputs"].transpose(1, 2).flatten(2)), found)


def test_two_watchers_of_a_tap_both_see_it_and_the_first_one_changes_it(model):
    hidden, seen = torch.randn(1, 3, 8), []
    stop = model.first.weights.watch(seen.append)
    end = model.first.weights.watch(torch.zeros_like, first=True)
    model.first(hidden, hidden)
    stop(), end()
    assert not seen[0].any()
    assert not is_watching()


def test_gradients_of_captured_values_are_kept_on_request(model):
    hidden = torch.randn(1, 3, 8)
    with capture(model, "first.weights", gradients=True) as seen:
        model.first(hidden, hidden).sum().backward()
    values = model.first.value(hidden).unflatten(-1, (2, -1)).transpose(1, 2)
    outgoing = model.first.output.weight.sum(0).unflatten(0, (2, -1))  # d sum / d head output
    assert_close(
        seen.gradients["first.weights"][0], (values @ outgoing[..., None]).transpose(-2, -1).expand(1, 2, 3, 3)
    )
    with capture(model, "first.weights") as plain:
        model.first(hidden, hidden)
    with pytest.raises(InputError, match="has no gradient"):
        _ = plain.gradients


def test_the_inputs_and_the_memory_are_what_is_projected(model):
    hidden = torch.randn(1, 4, 8)
    with capture(model, "*.inputs", "*.memory", "*.queries", "*.keys", "*.values") as seen:
        model(hidden)
    for part, attention in (("first", model.first), ("second", model.second)):
        inputs, memory = seen[f"{part}.inputs"][0], seen[f"{part}.memory"][0]
        assert torch.equal(memory, hidden)
        projections = (("queries", inputs, attention.query), ("keys", memory, attention.key))
        for name, given, layer in (*projections, ("values", memory, attention.value)):
            assert_close(seen[f"{part}.{name}"][0], layer(given).unflatten(-1, (2, -1)).transpose(1, 2))
    assert torch.equal(seen["first.inputs"][0], hidden)
    assert not torch.equal(seen["second.inputs"][0], hidden)
