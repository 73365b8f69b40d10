"""Recurrence, held against torch's own cells and against what padding must not do."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.layers.recurrent import CELLS, RecurrentLayer, output_of, reversed_order


def same_weights(ours, theirs):
    """Torch's layer with the weights of ours."""
    with torch.no_grad():
        for name, linear in (("ih", ours.input), ("hh", ours.recurrent)):
            getattr(theirs, f"weight_{name}_l0").copy_(linear.weight)
            getattr(theirs, f"bias_{name}_l0").copy_(linear.bias)
    return theirs


@pytest.mark.parametrize(("name", "kind"), [("gru", nn.GRU), ("lstm", nn.LSTM), ("elman", nn.RNN)])
def test_a_cell_is_torchs_forward_and_backward(name, kind):
    torch.manual_seed(0)
    ours = CELLS[name](5, 8)
    nn.init.normal_(ours.recurrent.bias)
    theirs = same_weights(ours, kind(5, 8, batch_first=True))
    hidden, begin = torch.randn(3, 7, 5), torch.randn(3, ours.parts, 8)
    states = ours(hidden, begin)
    first = begin.transpose(0, 1).contiguous()
    wanted, _ = theirs(hidden, (first[:1], first[1:]) if name == "lstm" else first)
    assert_close(output_of(states), wanted)
    output_of(states).square().sum().backward()
    wanted.square().sum().backward()
    assert_close(ours.input.weight.grad, theirs.weight_ih_l0.grad)
    assert_close(ours.recurrent.weight.grad, theirs.weight_hh_l0.grad)
    assert_close(ours.recurrent.bias.grad, theirs.bias_hh_l0.grad)


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_reading_both_ways_is_torchs_packed_bidirectional_layer(name):
    torch.manual_seed(1)
    reader = RecurrentLayer(name, 5, 8, bidirectional=True)
    kind = nn.GRU if name == "gru" else nn.LSTM
    theirs = same_weights(reader.forwards, kind(5, 4, batch_first=True, bidirectional=True))
    with torch.no_grad():
        for part, linear in (("ih", reader.backwards.input), ("hh", reader.backwards.recurrent)):
            getattr(theirs, f"weight_{part}_l0_reverse").copy_(linear.weight)
            getattr(theirs, f"bias_{part}_l0_reverse").copy_(linear.bias)
    hidden, lengths = torch.randn(3, 6, 5), torch.tensor([6, 2, 4])
    packed = nn.utils.rnn.pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)
    wanted, last = theirs(packed)
    wanted, _ = nn.utils.rnn.pad_packed_sequence(wanted, batch_first=True)
    found, end = reader(hidden, lengths)
    for row, length in enumerate(lengths):
        assert_close(found[row, :length], wanted[row, :length])
    last = last if name == "gru" else last[0]
    assert_close(output_of(end), last.transpose(0, 1).flatten(1))


def test_padding_reaches_no_state():
    torch.manual_seed(2)
    reader = RecurrentLayer("gru", 5, 8, bidirectional=True)
    hidden, lengths = torch.randn(2, 6, 5, requires_grad=True), torch.tensor([3, 6])
    found, last = reader(hidden, lengths)
    (gradient,) = torch.autograd.grad(found[0, :3].sum() + last[0].sum(), hidden)
    assert gradient[0, 3:].eq(0).all()
    assert gradient[0, :3].ne(0).any(-1).all()


def test_backward_order_turns_each_row_and_leaves_its_padding():
    order = reversed_order(torch.tensor([3, 1, 5]), 5)
    assert order.tolist() == [[2, 1, 0, 3, 4], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]


def test_an_lstm_that_forgets_nothing_and_lets_nothing_in_keeps_what_it_has():
    cell = CELLS["lstm"](1, 2)
    with torch.no_grad():
        for linear in (cell.input, cell.recurrent):
            linear.weight.zero_()
            linear.bias.zero_()
        cell.input.bias[:4] = torch.tensor([-50.0, -50.0, 50.0, 50.0])  # enter: shut, forget: keep all
    begin = torch.tensor([[[0.0, 0.0], [0.3, -0.7]]])
    assert_close(cell(torch.zeros(1, 100, 1), begin)[0, -1, 1], torch.tensor([0.3, -0.7]))
