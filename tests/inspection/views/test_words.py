"""The view `words`: the vectors are those of the layer, the table their cosines."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.trace import Axis, byte_spans
from regard.inspection.views.base import Choices
from regard.inspection.views.words import VIEW, occurrences
from tests.inspection.views.tiny import check_inside, matrices, texts, traced

SENTENCES = [[1, 9, 7, 30, 2], [1, 12, 7, 31, 2], [1, 7, 5, 30, 2]]


def subject_of(kind):
    subjects = [traced(kind, VIEW, ids=ids) for ids in SENTENCES]
    return replace(subjects[0], others=[one.trace for one in subjects[1:]])


@pytest.mark.parametrize(
    ("kind", "tap"),
    [("bert", "blocks.1.hidden"), ("gpt", "blocks.1.hidden"), ("transformer", "encoder.blocks.1.hidden")],
)
def test_the_table_has_the_cosines_of_the_vectors(kind, tap):
    subject = subject_of(kind)
    figure = VIEW.draw(subject, Choices(token="t7"))
    places = [ids.index(7) for ids in SENTENCES]
    traces = [subject.trace, *subject.others]
    vectors = [torch.from_numpy(trace.value(tap)[at]) for trace, at in zip(traces, places, strict=True)]
    found = matrices(figure.scene)["cosine"].values
    for one in range(3):
        for other in range(3):
            assert found[one, other] == pytest.approx(
                torch.cosine_similarity(vectors[one], vectors[other], 0).item(), abs=1e-5
            )
    check_inside(figure)


def test_a_layer_can_be_chosen():
    subject = subject_of("bert")
    assert "after layer 0 of 0 to 1" in VIEW.draw(subject, Choices(token="t7", layer=0)).scene.title
    with pytest.raises(InputError, match="--layer 2: wanted 0 to 1"):
        VIEW.draw(subject, Choices(token="t7", layer=2))


def test_three_points_in_a_plane_lose_nothing():
    scene = VIEW.draw(subject_of("bert"), Choices(token="t7")).scene
    assert "PCA: the two axes keep 100% of the variance" in texts(scene)


def test_a_word_of_two_tokens_is_their_mean():
    subject = traced("bert", VIEW, ids=[1, 9, 7, 30, 2])
    tokens = ("[CLS]", "walk", "·ing", "home", "[SEP]")
    axis = Axis(tokens=tokens, text="Walking home", spans=byte_spans("Walking home", tokens))
    trace = replace(subject.trace, info=subject.trace.info.model_copy(update={"axes": {"text": axis}}))
    (found,) = occurrences(trace, "walking", 1)
    assert np.allclose(found.vector, trace.value("blocks.1.hidden")[1:3].mean(0))


def test_what_is_missing_is_said():
    subject = subject_of("bert")
    with pytest.raises(InputError, match="which word"):
        VIEW.draw(subject, Choices())
    with pytest.raises(InputError, match="'t12' is there once|there is no token"):
        VIEW.draw(subject, Choices(token="t12"))
    with pytest.raises(InputError, match="'t7' is there once"):
        VIEW.draw(replace(subject, others=()), Choices(token="t7"))
