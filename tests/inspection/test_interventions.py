"""Interventions: what they change, and that a sweep finds the head that carries the answer."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.errors import InputError
from regard.inspection.capture import capture
from regard.inspection.interventions import (
    choice_log_probability,
    force_attention,
    intervene,
    parse_switch,
    patch,
    patch_attention,
    scale_head,
    sweep,
    switch_off,
)
from regard.models.gpt import GPT, GPTConfig

PLANTED = ("blocks.1.attention", 2)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=40, context=16, width=24, heads=3, layers=2, dropout=0.0)).eval()


@pytest.fixture
def planted(model):
    """Only one head writes to the residual: the rows of every other one in W_O are zero."""
    for number, block in enumerate(model.blocks):
        torch.nn.init.normal_(block.attention.output.weight, std=1.0)
        for head in range(3):
            if (f"blocks.{number}.attention", head) != PLANTED:
                block.attention.output.weight.data[:, head * 8 : (head + 1) * 8] = 0.0
    return model


IDS = torch.tensor([[5, 9, 12, 30]])


def test_the_sweep_finds_the_planted_head(planted):
    effects = {(one.attention.path, one.head): one.drop for one in sweep(planted, lambda: planted(IDS))}
    assert len(effects) == 6
    seen: list = []
    sweep(planted, lambda: planted(IDS), track=lambda heads: seen.extend(heads) or heads)
    assert len(seen) == 6  # what shows the progress
    assert max(effects, key=lambda one: abs(effects[one])) == PLANTED
    assert all(abs(drop) < 1e-6 for one, drop in effects.items() if one != PLANTED)
    assert abs(effects[PLANTED]) > 0.01


def test_a_head_that_is_not_there_is_an_error_with_the_range(model):
    weights = np.zeros((3, 4, 4), np.float32)
    for change in (patch_attention(PLANTED[0], weights, head=99), patch_attention(PLANTED[0], weights, head=-1)):
        with (
            pytest.raises(InputError, match="blocks.1.attention has heads 0 to 2; got head"),
            intervene(model, [change]),
        ):
            model(IDS)
    negative = [force_attention(PLANTED[0], 0, -1, 0), patch("blocks.0.hidden", -1, np.zeros(24))]
    for change in negative:
        with pytest.raises(InputError), intervene(model, [change]):
            model(IDS)


@torch.inference_mode()
def test_a_head_switched_off_is_a_head_without_rows_in_the_output_matrix(model):
    plain = model(IDS)
    with intervene(model, [switch_off("blocks.0.attention", 1)]) as said:
        changed = model(IDS)
    assert said == ["blocks.0.attention: head 1 switched off (zero)"]
    assert_close(model(IDS), plain)
    model.blocks[0].attention.output.weight[:, 8:16] = 0.0
    assert_close(model(IDS), changed, atol=1e-5, rtol=1e-4)


@torch.inference_mode()
def test_mean_scale_force_and_patch_change_what_they_say(model):
    path = "blocks.0.attention"
    with capture(model, f"{path}.head_outputs", f"{path}.weights", "blocks.0.hidden") as plain:
        model(IDS)
    outputs, weights = plain[f"{path}.head_outputs"][0], plain[f"{path}.weights"][0]

    def seen(point, *changes):
        with intervene(model, changes), capture(model, point) as captured:
            model(IDS)
        return captured[point][0]

    mean = seen(f"{path}.head_outputs", switch_off(path, 0, "mean"))
    assert_close(mean[:, 0], outputs[:, 0].mean(1, keepdim=True).expand_as(outputs[:, 0]))
    assert_close(seen(f"{path}.head_outputs", scale_head(path, 2, 3.0))[:, 2], 3 * outputs[:, 2])
    forced = seen(f"{path}.weights", force_attention(path, 1, 3, 0))
    assert forced[0, 1, 3].tolist() == [1, 0, 0, 0]
    assert_close(forced[:, 0], weights[:, 0])
    other = np.tril(np.full((3, 4, 4), 0.25, np.float32))
    assert_close(seen(f"{path}.weights", patch_attention(path, other, head=1))[0, 1], torch.from_numpy(other[1]))
    value = np.arange(24, dtype=np.float32)
    patched = seen("blocks.0.hidden", patch("blocks.0.hidden", 2, value))
    assert_close(patched[0, 2], torch.from_numpy(value))
    assert_close(patched[0, :2], plain["blocks.0.hidden"][0][0, :2])


def test_what_does_not_fit_is_said(model):
    for change, said in [
        (switch_off("blocks.0.attention", 7), "has heads 0 to 2; got head 7"),
        (force_attention("blocks.0.attention", 0, 9, 0), "wanted 0 to 3 and 0 to 3"),
        (patch_attention("blocks.0.attention", np.ones((3, 5, 5))), "wanted texts of as many tokens"),
        (patch("blocks.0.hidden", 9, np.ones(24)), "for position 9"),
    ]:
        with pytest.raises(InputError, match=said), intervene(model, [change]):
            model(IDS)
    with pytest.raises(InputError, match="wanted PATH:HEAD"):
        parse_switch("blocks.0")
    with pytest.raises(InputError, match="no head whose choice"):
        choice_log_probability((None,), None)
