"""The view `states`: the gates and states shown obey the equations of the cells."""

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.views import choose_view
from regard.inspection.views.base import Choices
from regard.inspection.views.states import VIEW, layer_values
from tests.inspection.views.tiny import TARGET, check_inside, matrices, traced


def shown(subject):
    figure = VIEW.draw(subject, Choices())
    check_inside(figure)
    return {frame.name: {name: one.values.T for name, one in matrices(frame.draw()).items()} for frame in figure.frames}


@pytest.mark.parametrize(("number", "directions"), [(0, ["forwards"]), (2, ["forwards", "backwards"])])
def test_the_states_of_a_gru_follow_from_its_gates(number, directions):
    subject = traced("rnn", VIEW, number=number)
    found = shown(subject)
    assert list(found) == [*(f"encoder.0.{one}" for one in directions), "decoder.0"]
    for name, values in found.items():
        order = slice(None, None, -1) if name.endswith("backwards") else slice(None)
        update, new, state = (values[key][order] for key in ("update_gate", "candidate", "state"))
        wanted = (1 - update[1:]) * new[1:] + update[1:] * state[:-1]
        assert np.allclose(state[1:], wanted, atol=1e-5), name
        if name.startswith("encoder"):  # it starts from zeros
            assert np.allclose(state[0], (1 - update[0]) * new[0], atol=1e-5)


def test_the_gates_are_those_of_the_cell():
    subject = traced("rnn", VIEW, number=0)
    cell = subject.pipeline.model.encoder[0].forwards
    with torch.inference_mode():
        hidden = subject.pipeline.model.embedding(torch.tensor([[5]]))
        reset = (cell.input(hidden[0, 0]) + cell.recurrent.bias)[:24].sigmoid()
    found = shown(subject)["encoder.0.forwards"]["reset_gate"]
    assert found[0].tolist() == pytest.approx(reset.tolist(), rel=1e-4)


def test_the_states_of_an_lstm_follow_from_its_gates():
    subject = traced("rnn", VIEW, number=1)  # two layers; only the states of the last lead to the logits
    found = shown(subject)
    assert "state" not in found["decoder.0"]
    values = found["decoder.1"]
    assert set(values) == {"input_gate", "forget_gate", "output_gate", "candidate", "state"}
    cell = np.arctanh(values["state"].astype(np.float64) / values["output_gate"])
    wanted = values["forget_gate"][1:] * cell[:-1] + values["input_gate"][1:] * values["candidate"][1:]
    assert np.allclose(cell[1:], wanted, atol=1e-3)


def test_a_captioner_with_an_lstm_has_states():
    subject = traced("captioner", VIEW)
    values = layer_values(subject.trace, "decoder.cells.0")
    assert values["state"].shape == values["forget_gate"].shape == (len(TARGET), 24)
    assert list(shown(subject)) == ["decoder.cells.0"]


@pytest.mark.parametrize(("kind", "number"), [("gpt", 0), ("captioner", 1)])
def test_other_models_have_none(kind, number):
    with pytest.raises(InputError, match="it has no recurrent layers"):
        choose_view("states", traced(kind, VIEW, number=number).trace.info)
