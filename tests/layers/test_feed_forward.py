"""The feed-forward networks, held against their formulas."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.layers.feed_forward import ACTIVATIONS, FeedForward, GatedFeedForward

FORMULAS = {
    "relu": lambda x: max(x, 0.0),
    "swish": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    # Hendrycks & Gimpel 2016, section 2
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def test_every_activation_has_a_formula_here():
    assert set(FORMULAS) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_formula(name):
    points = torch.linspace(-6, 6, 241)
    wanted = torch.tensor([FORMULAS[name](x) for x in points.double().tolist()])
    assert_close(ACTIVATIONS[name](points), wanted, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_feed_forward_network_is_two_matrices_and_what_stands_between(name):
    network = FeedForward(6, 10, name)
    hidden = torch.randn(2, 3, 6)
    inner = hidden @ network.expand.weight.T + network.expand.bias
    inner = inner.detach().double().apply_(FORMULAS[name]).float()
    assert_close(network(hidden), inner @ network.contract.weight.T + network.contract.bias)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_gated_network_is_its_formula(name):
    """(f(x W1) · x W2) W3, of a matrix whose first half is W1."""
    network = GatedFeedForward(6, 10, name)
    hidden = torch.randn(2, 3, 6)
    first, second = network.expand.weight[:10], network.expand.weight[10:]
    gate = (hidden @ first.T).detach().double().apply_(FORMULAS[name]).float()
    assert_close(network(hidden), (gate * (hidden @ second.T)) @ network.contract.weight.T)
    assert [name for name, _ in network.named_parameters()] == ["expand.weight", "contract.weight"]


def test_llamas_gate_is_swish():
    assert GatedFeedForward(6, 10).activation is ACTIVATIONS["swish"]


def test_a_network_without_biases_has_two_matrices():
    network = FeedForward(6, 10, "relu", bias=False)
    hidden = torch.randn(2, 3, 6)
    assert [name for name, _ in network.named_parameters()] == ["expand.weight", "contract.weight"]
    assert_close(network(hidden), (hidden @ network.expand.weight.T).relu() @ network.contract.weight.T)
