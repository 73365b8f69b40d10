"""The view `checkpoints`: the attention of each checkpoint, and the head it opens on."""

from dataclasses import replace

import numpy as np
import pytest

from regard.errors import InputError
from regard.inspection.views import find_view
from regard.inspection.views.attention.checkpoints import change
from regard.inspection.views.base import Choices, Subject
from tests.inspection.views.subjects import matrices, subject_of
from tests.inspection.views.tiny import check_inside, texts

VIEW = find_view("checkpoints")
STEPS = ("step 5", "step 10")


def run_of(kind, path, head, weights, before=None):
    """Two checkpoints, alike but for one head of the last."""
    trace = subject_of(kind).trace
    values, older = dict(trace.values), dict(trace.values)
    values[path] = values[path].copy()
    values[path][head] = weights
    if before is not None:
        older[path] = older[path].copy()
        older[path][head] = before
    return Subject(replace(trace, values=older), others=[replace(trace, values=values)], names=STEPS)


def test_it_opens_on_the_head_that_changed_the_most_and_shows_every_checkpoint():
    path = "blocks.1.attention.weights"
    subject = run_of("bert", path, 1, np.eye(6, dtype=np.float32))
    figure = VIEW.draw(subject, Choices())
    check_inside(figure)
    assert figure.frames[figure.chosen].name == "blocks.1.attention, head 1"
    found = matrices(figure.scene)
    assert list(found) == ["attention, step 5", "attention, step 10"]
    np.testing.assert_array_equal(found["attention, step 5"].values, subject.trace.values[path][1])
    np.testing.assert_array_equal(found["attention, step 10"].values, np.eye(6))
    assert "step 10: diagonal" in texts(figure.scene)
    assert list(found["attention, step 10"].rows) == list(found["attention, step 5"].rows) != [""] * 6


def test_with_gold_it_opens_on_the_head_that_aligns_best_in_the_end():
    aligned, wrong = np.full((5, 4), 0.01, np.float32), np.zeros((5, 4), np.float32)
    for row, column in enumerate((0, 2, 2, 1, 3)):
        aligned[row, column] = 0.97
    wrong[:, 0] = 1
    subject = run_of("transformer", "decoder.blocks.1.cross_attention.weights", 2, aligned, wrong)
    figure = VIEW.draw(subject, Choices(gold=((0, 0), (2, 1), (1, 2))))
    assert figure.frames[figure.chosen].name == "decoder.blocks.1.cross_attention, head 2"
    assert {"step 5: AER 67%", "step 10: AER 0%"} <= set(texts(figure.scene))


def test_gold_beside_a_token_is_refused():
    subject = run_of("transformer", "decoder.blocks.1.cross_attention.weights", 2, *[np.zeros((5, 4), np.float32)] * 2)
    with pytest.raises(InputError, match="--gold does not change where one token looks"):
        VIEW.draw(subject, Choices(token="0", gold=((0, 0),)))


def test_a_token_has_a_row_for_each_checkpoint():
    path = "blocks.0.attention.weights"
    subject = run_of("bert", path, 0, np.eye(6, dtype=np.float32))
    figure = VIEW.draw(subject, Choices(token="it", layer=0, head=0))
    check_inside(figure)
    (matrix,) = matrices(figure.scene).values()
    assert tuple(matrix.rows) == STEPS
    np.testing.assert_array_equal(matrix.values, [subject.trace.values[path][0, 4], np.eye(6)[4]])
    mean = VIEW.draw(subject, Choices(token="it")).scene
    weights = np.concatenate([subject.trace.weights(one)[:, 4] for one in subject.trace.attentions()])
    np.testing.assert_allclose(next(iter(matrices(mean).values())).values[0], weights.mean(0), atol=1e-6)


def test_how_much_attention_has_moved():
    assert change(np.eye(3), np.eye(3)) == 0
    assert change(np.eye(3), np.eye(3)[[1, 0, 2]]) == pytest.approx(2 / 3)


def test_one_trace_is_not_a_run():
    with pytest.raises(InputError, match="compares the checkpoints of a run"):
        VIEW.draw(subject_of("bert"), Choices())
