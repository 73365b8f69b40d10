"""The view of masks: masked cells are those of the model, and have the score -inf and the weight 0."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.inspection.trace import Axis
from regard.inspection.tracing import TraceInputs, record
from regard.inspection.views import find_view
from regard.inspection.views.attention.masks import kind_of_mask
from regard.inspection.views.base import Choices, Subject
from tests.contracts.examples import example_of
from tests.inspection.views.subjects import TEXT, has_title, matrices, subject_of

draw = find_view("masks").draw
FUTURE = np.triu(np.ones((len(TEXT), len(TEXT)), bool), 1)


def test_a_language_models_scores_are_masked_after_the_query():
    subject = subject_of("gpt")
    scene = draw(subject, Choices(layer=1, head=0)).scene
    before, after = matrices(scene).values()
    scaled = subject.trace.values["blocks.1.attention.scaled_scores"][0]
    np.testing.assert_array_equal(before.masked, FUTURE)
    np.testing.assert_array_equal(after.masked, FUTURE)
    np.testing.assert_array_equal(before.values[~FUTURE], scaled[~FUTURE])
    weights = torch.from_numpy(scaled).masked_fill(torch.from_numpy(FUTURE), -torch.inf).softmax(-1)
    np.testing.assert_allclose(after.values, weights, atol=1e-6)
    assert has_title(scene, f"it → the: {scaled[4, 1]:.6g}")
    assert has_title(scene, "the → it: masked")
    assert "Causal mask" in scene.caption


def test_padding_keys_are_masked_for_every_query():
    model = example_of("transformer").loud_model()
    source, target = torch.tensor([[5, 6, 7, 2, 0, 0]]), torch.tensor([[1, 5]])
    assert model.config.special_ids.pad_id == 0
    axes = {"source": Axis(tokens=("a", "b", "c", "</s>", "<pad>", "<pad>")), "target": Axis(tokens=("<bos>", "d"))}
    inputs = TraceInputs(axes, lambda: model(source, target))
    trace = record(SimpleNamespace(model=model, kind="transformer"), "test", inputs)
    for pattern in ("encoder.*", "*cross_attention"):
        scene = draw(Subject(trace), Choices(attention=pattern, layer=0, head=1)).scene
        for matrix in matrices(scene).values():
            assert matrix.masked is not None
            np.testing.assert_array_equal(matrix.masked.all(0), [False] * 4 + [True] * 2)
            assert not matrix.masked[:, :4].any()
        assert "Padding mask: no query attends to 2 padding keys" in scene.caption


def test_a_picture_shows_the_first_head_that_masks_something():
    figure = draw(subject_of("transformer"), Choices())
    assert figure.frames[figure.chosen].name == "decoder.blocks.0.attention, head 0"
    assert "Nothing is masked" in draw(subject_of("bert"), Choices()).scene.caption


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        (np.zeros((2, 3), bool), "Nothing is masked"),
        (np.array([[0, 1], [0, 0]], bool), "Causal mask: no query attends to a later key"),
        (np.array([[0, 1, 1], [0, 0, 1], [0, 0, 1]], bool), "Causal mask: no query attends to a later key. Padding"),
        (np.array([[0, 0, 1], [0, 0, 1], [0, 0, 1]], bool), "Padding mask: no query attends to 1 padding key"),
        (np.array([[0, 1, 0], [0, 0, 0], [1, 0, 0]], bool), "Some pairs are masked"),
    ],
)
def test_a_mask_is_named(hidden, said):
    assert kind_of_mask(hidden).startswith(said)
