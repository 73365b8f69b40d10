"""The view of attention rollout: the product of the layers, each half attention and half residual."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.views import choose_view, find_view
from regard.inspection.views.base import Choices, Subject
from tests.inspection.views.subjects import SOURCE, TEXT, has_title, matrices, subject_of

draw = find_view("rollout").draw


@pytest.mark.parametrize(
    ("kind", "path", "labels"),
    [("bert", "blocks", TEXT), ("gpt", "blocks", TEXT), ("transformer", "encoder.blocks", SOURCE)],
)
def test_the_layers_are_multiplied_in_their_order(kind, path, labels):
    subject = subject_of(kind)
    figure = draw(subject, Choices())
    (matrix,) = matrices(figure.scene).values()
    wanted = torch.eye(len(labels), dtype=torch.float64)
    for layer in range(len(figure.frames)):
        weights = torch.from_numpy(subject.trace.values[f"{path}.{layer}.attention.weights"]).double()
        wanted = (weights.mean(0) + torch.eye(len(labels))) / 2 @ wanted
    assert len(figure.frames) == 2
    np.testing.assert_allclose(matrix.values, wanted, atol=1e-6)
    np.testing.assert_allclose(matrix.values.sum(-1), 1, atol=1e-6)
    assert tuple(matrix.rows) == tuple(matrix.columns) == labels
    assert has_title(figure.scene, f"{labels[1]} → {labels[0]}: {matrix.values[1, 0]:.6g}")


def test_a_layer_may_be_chosen():
    subject = subject_of("bert")
    (matrix,) = matrices(draw(subject, Choices(layer=0)).scene).values()
    weights = subject.trace.values["blocks.0.attention.weights"].mean(0)
    np.testing.assert_allclose(matrix.values, (weights + np.eye(len(TEXT))) / 2, atol=1e-6)
    with pytest.raises(InputError, match="--layer 2: wanted 0 to 1"):
        draw(subject, Choices(layer=2))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("rnn", "no self-attention"), ("conv", "no self-attention"), ("vilbert", "one stack of self-attention")],
)
def test_where_it_has_no_meaning_it_is_an_error(kind, reason):
    with pytest.raises(InputError, match=reason):
        choose_view("rollout", subject_of(kind).trace.info)


def test_a_trace_of_some_layers_is_an_error():
    trace = subject_of("bert").trace
    values = {path: value for path, value in trace.values.items() if not path.startswith("blocks.0.")}
    with pytest.raises(InputError, match=r"rollout needs the weights of all layers.*blocks\.0\.attention"):
        draw(Subject(replace(trace, values=values)), Choices())
