"""The view `positions`: each picture has the numbers of the model's own encoding."""

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.drawing.scene import Line
from regard.inspection.views import choose_view
from regard.inspection.views.base import Choices
from regard.inspection.views.positions import VIEW, mean_products
from regard.layers.positions import sinusoidal
from regard.models.t5 import position_buckets
from tests.inspection.views.tiny import check_inside, matrices, traced


def scenes(kind, number=0):
    subject = traced(kind, VIEW, number=number)
    figure = VIEW.draw(subject, Choices())
    check_inside(figure)
    return subject.pipeline.model, [frame.draw() for frame in figure.frames]


def test_sinusoidal_positions_are_the_formula():
    _, (scene,) = scenes("transformer")
    (matrix,) = matrices(scene).values()
    assert np.array_equal(matrix.values, sinusoidal(64, 24).numpy())


@pytest.mark.parametrize("kind", ["gpt", "bert"])
def test_learned_positions_are_the_weights(kind):
    model, (scene,) = scenes(kind)
    weight = model.positions.weight if kind == "gpt" else model.embedding.positions.weight
    (matrix,) = matrices(scene).values()
    assert np.array_equal(matrix.values, weight.detach().numpy())


def test_an_outlier_does_not_leave_all_others_white():
    subject = traced("bert", VIEW)
    weight = subject.pipeline.model.embedding.positions.weight
    with torch.no_grad():
        weight.normal_(generator=torch.Generator().manual_seed(0))
        weight[3, 5] = 50.0
    (frame,) = VIEW.draw(subject, Choices()).frames
    scene = frame.draw()
    (matrix,) = matrices(scene).values()
    assert matrix.high == pytest.approx(np.percentile(weight.detach().abs().numpy(), 99))
    assert matrix.values[3, 5] == 50
    assert scene.caption.endswith(f"The darkest is {matrix.high:.2g} or more (99 % are below); the largest is 50.")


def test_without_an_outlier_the_largest_number_is_the_darkest():
    _, (scene,) = scenes("transformer")
    (matrix,) = matrices(scene).values()
    assert matrix.high == np.abs(matrix.values).max()
    assert "darkest" not in scene.caption


def test_the_products_are_means_over_pairs_of_one_distance():
    vectors = np.random.default_rng(0).normal(size=(5, 3))
    found = mean_products(vectors)
    assert found[2] == pytest.approx(np.mean([vectors[at] @ vectors[at + 2] for at in range(3)]))
    assert found[0] == pytest.approx((vectors**2).sum(1).mean())


def test_rotary_positions_are_the_cosines_and_a_product_of_equal_vectors():
    model, (scene,) = scenes("llama")
    frequencies = model.positions.frequencies
    (matrix,) = matrices(scene).values()
    wanted = (torch.arange(64)[:, None] * frequencies).cos()
    assert np.allclose(matrix.values, wanted.numpy(), atol=1e-5)
    curve = next(item for item in scene.items if isinstance(item, Line) and item.title)
    told = [float(number) for number in curve.title.split(", ")[:-1]]
    assert told == pytest.approx(wanted.mean(-1)[:8].tolist(), abs=1e-4)  # of equal vectors: the mean cosine


def test_the_bias_of_t5_is_that_of_the_bucket_of_each_distance():
    model, found = scenes("t5")
    assert len(found) == 2  # of the encoder and of the decoder
    (matrix,) = matrices(found[1]).values()
    config = model.config
    buckets = position_buckets(
        -torch.arange(64), num_buckets=config.num_buckets, max_distance=config.max_distance, bidirectional=False
    )
    assert np.allclose(matrix.values, model.decoder.position_bias.weight.detach()[buckets].T.numpy())


def test_a_recurrent_model_has_no_positions():
    with pytest.raises(InputError, match="it has no position encoding"):
        choose_view("positions", traced("rnn", VIEW).trace.info)
