"""The view `map`: the words of the input, and their nearest embeddings."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from regard.errors import InputError
from regard.inspection.drawing.scene import Rectangle
from regard.inspection.trace import Axis
from regard.inspection.views.base import Choices
from regard.inspection.views.embedding_map import VIEW
from tests.inspection.views.tiny import check_inside, texts, traced

WORDS = [None, None, "cat", "dog", "house", *[f"w{number}" for number in range(5, 40)]]


def subject_of(text, kind="bert"):
    """A model in which the embedding of "dog" is nearly that of "cat"."""
    subject = traced(kind, VIEW)
    with torch.no_grad():
        subject.pipeline.model.input_embeddings[3] = subject.pipeline.model.input_embeddings[2] * 0.9
    subject.pipeline.tokenizer = SimpleNamespace(single_token_words=lambda: WORDS)
    axes = {"text": Axis(tokens=(text,), text=text)}
    info = subject.trace.info.model_copy(update={"axes": axes})
    return replace(subject, trace=replace(subject.trace, info=info))


@pytest.mark.parametrize("kind", ["bert", "gpt", "transformer", "captioner"])
def test_the_nearest_embedding_stands_first_with_its_cosine(kind):
    subject = subject_of("The cat", kind)
    figure = VIEW.draw(subject, Choices(limit=3))
    check_inside(figure)
    weight = subject.pipeline.model.input_embeddings
    (line,) = [text for text in texts(figure.scene) if text.startswith("dog 1.00, ")]
    assert line.count(",") == 2  # three neighbors
    word, cosine = line.split(", ")[1].split()
    true = torch.cosine_similarity(weight[2], weight[WORDS.index(word)], 0).item()
    assert float(cosine) == pytest.approx(true, abs=0.006)


def test_words_of_the_input_and_neighbors_have_dots_of_their_own():
    scene = VIEW.draw(subject_of("the cat and the house"), Choices(limit=2)).scene
    dots = [item.title.partition(":")[0] for item in scene.items if isinstance(item, Rectangle) and item.title]
    assert dots[:2] == ["cat", "house"]
    assert "dog" in dots
    assert len(dots) == len(set(dots)) <= 6


def test_an_input_without_a_known_word_is_an_error():
    with pytest.raises(InputError, match="no word of the input is a token of its own"):
        VIEW.draw(subject_of("elephants"), Choices())
