"""The atlas of heads: every head's weights, sorted and counted by pattern."""

from dataclasses import replace

import numpy as np

from regard.inspection.drawing.scene import Matrix, Text
from regard.inspection.views import find_view
from regard.inspection.views.base import Choices, Subject
from tests.inspection.views.subjects import matrices, subject_of

draw = find_view("heads").draw


def texts(scene) -> list[str]:
    return [item.text for item in scene.items if isinstance(item, Text)]


def with_head(head: int, weights: np.ndarray) -> Subject:
    trace = subject_of("bert").trace
    changed = trace.values["blocks.1.attention.weights"].copy()
    changed[head] = weights
    return Subject(replace(trace, values={**trace.values, "blocks.1.attention.weights": changed}))


def test_every_head_of_every_layer_has_its_weights():
    subject = subject_of("bert")
    scene = draw(subject, Choices()).scene
    named = {name.partition(": ")[0]: matrix for name, matrix in matrices(scene).items()}
    for layer in range(2):
        for head, weights in enumerate(subject.trace.values[f"blocks.{layer}.attention.weights"]):
            drawn = named[f"blocks.{layer}.attention, layer {layer}, head {head}"]
            np.testing.assert_array_equal(drawn.values, weights)


def test_a_head_on_the_token_before_comes_first_and_is_counted():
    before = np.eye(6, k=-1)
    before[0, 0] = 1.0
    scene = draw(with_head(2, before), Choices(layer=1)).scene
    first = next(item for item in scene.items if isinstance(item, Matrix))
    assert first.name == "blocks.1.attention, layer 1, head 2: previous"
    assert "most weight on the token before: 1 head" in texts(scene)
    assert "layer 1" in texts(scene)


def test_each_kind_of_attention_is_a_frame():
    figure = draw(subject_of("transformer"), Choices())
    assert [frame.name for frame in figure.frames] == [
        "source attends to source",
        "target attends to target",
        "target attends to source",
    ]
