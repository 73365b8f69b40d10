"""The view of one head: the matrix and the lines have the model's own weights."""

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.drawing.links import LEAST, MOST, linked
from regard.inspection.drawing.scene import Line
from regard.inspection.views import find_view
from regard.inspection.views.base import Choices
from tests.inspection.views.subjects import SOURCE, TARGET, TEXT, has_title, line_titles, matrices, subject_of

draw = find_view("head").draw


def test_the_matrix_has_the_weights_of_the_chosen_head():
    subject = subject_of("gpt")
    figure = draw(subject, Choices(layer=1, head=2))
    (frame,) = figure.frames
    assert frame.name == "blocks.1.attention, head 2"
    values = subject.trace.values
    masked = torch.from_numpy(values["blocks.1.attention.masked_scores"][2])
    (matrix,) = matrices(figure.scene).values()
    np.testing.assert_allclose(matrix.values, masked.softmax(-1).numpy(), atol=1e-6)
    assert tuple(matrix.rows) == tuple(matrix.columns) == TEXT


def test_there_is_a_line_for_each_weight_that_counts():
    subject = subject_of("bert")
    scene = draw(subject, Choices(layer=0, head=1)).scene
    weights = subject.trace.values["blocks.0.attention.weights"][1]
    large = {(q, k) for q, k in np.argwhere(weights >= LEAST).tolist()}
    assert 0 < len(large) < weights.size
    assert line_titles(scene) == {f"{TEXT[q]} → {TEXT[k]}: {weights[q, k]:.6g}" for q, k in large}
    q, k = max(large, key=lambda pair: weights[pair])
    assert has_title(scene, f"{TEXT[q]} → {TEXT[k]}: {weights[q, k]:.6g}")


def test_every_layer_and_head_is_a_frame():
    figure = draw(subject_of("bert"), Choices())
    assert [frame.name for frame in figure.frames] == [
        f"blocks.{layer}.attention, head {head}" for layer in range(2) for head in range(3)
    ]


def test_the_rows_of_cross_attention_are_the_tokens_that_were_chosen():
    scene = draw(subject_of("transformer"), Choices(attention="*cross_attention", layer=0, head=0)).scene
    (matrix,) = matrices(scene).values()
    assert (tuple(matrix.rows), tuple(matrix.columns)) == (TARGET, SOURCE)


def test_a_long_text_has_a_bounded_number_of_lines():
    weights = np.random.default_rng(0).dirichlet(np.full(60, 0.5), 60).astype(np.float32)
    labels = [str(number) for number in range(60)]
    drawn = [item for item in linked(0, 0, labels, labels, weights).items if isinstance(item, Line)]
    assert (weights >= LEAST).sum() > len(drawn) == MOST
    least = min(float(item.title.rpartition(": ")[2]) for item in drawn)
    assert least == pytest.approx(float(np.sort(weights, axis=None)[-MOST]), rel=1e-5)


def test_an_unknown_head_is_an_error():
    with pytest.raises(InputError, match="--head 7: wanted 0 to 2"):
        draw(subject_of("bert"), Choices(head=7))
