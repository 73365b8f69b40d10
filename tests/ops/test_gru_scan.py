"""The loops as one function, held against the loops themselves: values and every gradient."""

import pytest
import torch
from torch.testing import assert_close

from regard.inspection.capture import capture
from regard.layers.recurrent import GRU, Recurrence
from regard.models.rnn_seq2seq import RNNConfig, RNNTranslator
from regard.ops.gru_scan import AttendingScan, GRUScan


def gradients(values, wanted):
    torch.manual_seed(9)
    return torch.autograd.grad(sum((value * torch.randn(value.shape)).sum() for value in values), wanted)


@pytest.mark.parametrize(("hidden", "rows"), [(1, 1), (7, 3)])
def test_a_scan_is_the_loop(hidden, rows):
    torch.manual_seed(0)
    cell = GRU(5, 6)
    torch.nn.init.normal_(cell.recurrent.bias)
    given, state = torch.randn(hidden, rows, 18, requires_grad=True), torch.randn(rows, 1, 6, requires_grad=True)
    loop, scan = Recurrence.run(cell, given, state), cell.run(given, state)
    assert_close(scan, loop)
    parts = [given, state, cell.recurrent.weight, cell.recurrent.bias]
    for one, other in zip(gradients([scan], parts), gradients([loop], parts), strict=True):
        assert_close(one, other)


def test_the_gradients_are_those_of_small_differences():
    torch.manual_seed(1)
    hidden, rows, keys, width = 3, 2, 4, 3

    def made(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    given, state, weight, bias = made(hidden, rows, 9), made(rows, width), made(9, width), made(9)
    assert torch.autograd.gradcheck(GRUScan.apply, (given, state, weight, bias))
    mask = torch.tensor([[True] * keys, [True, True, False, False]])
    rest = (weight, bias, made(width, width), made(width), made(width), made(9, width))
    arguments = (given, state, made(rows, keys, width), made(rows, keys, width), mask, *rest)
    assert torch.autograd.gradcheck(AttendingScan.apply, arguments)


def test_a_model_learns_the_same_from_the_loop_and_from_the_scan():
    torch.manual_seed(2)
    model = RNNTranslator(RNNConfig(vocab_size=20, width=8, dropout=0.0, layers=2))
    source = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
    target = torch.tensor([[1, 9, 10], [1, 11, 12]])
    parts = [part for part in model.parameters() if part.requires_grad]
    scanned = model(source, target)
    with capture(model, "bridge.weights"):
        looped = model(source, target)
    assert_close(scanned, looped)
    assert "AttendingScan" in names(scanned.grad_fn)
    assert "AttendingScan" not in names(looped.grad_fn)
    for one, other in zip(gradients([scanned], parts), gradients([looped], parts), strict=True):
        assert_close(one, other)


def names(node):
    """The functions behind a value."""
    found, open_nodes = set(), [node]
    while open_nodes:
        node = open_nodes.pop()
        if node is not None and node not in found:
            found.add(node)
            open_nodes += [before for before, _ in node.next_functions]
    return " ".join(node.name() for node in found)
