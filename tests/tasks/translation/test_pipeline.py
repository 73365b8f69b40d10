"""A trained translator: answers in order, alignments true through any search."""

import numpy as np
import pytest
import torch

import regard
from regard.errors import InputError
from regard.generation import generate
from regard.generation.decode import Limits
from regard.inspection.capture import capture


@pytest.fixture(scope="module")
def translator(trained):
    return regard.load(trained)


TEXTS = ["the boy eats bread", "we are eating", "the red house is small and the girl sings", "he sees the dog"]


@torch.no_grad()
@pytest.mark.parametrize("strategy", [regard.Greedy(), regard.Beam(3, num_return=3), regard.Sample(seed=2, top_k=5)])
def test_an_alignment_is_what_the_search_saw(translator, strategy):
    """The weights of a cached, step by step decoding of the same tokens, collected one by one, are the same."""
    model, begin = translator.model, translator.tokenizer.bos_id
    for text in TEXTS:
        source = translator.task.encode([text])
        for found in generate(model, source, strategy, Limits([12]))[0]:
            state, rows = model.start(source), []
            for token in [begin, *found.tokens[:-1]]:
                with capture(model, *model.alignment_taps) as seen:
                    _, state = model.step(torch.tensor([token]), state)
                rows.append(torch.stack([values[0][0] for values in seen.values()]).mean((0, 1))[0].numpy())
            if found.tokens:
                aligned = translator.align(source[0].tolist(), found.tokens)
                np.testing.assert_allclose(aligned.weights, np.stack(rows), atol=1e-5)


def test_answers_come_in_the_order_of_the_texts_and_equal_those_alone(translator):
    many = TEXTS * 40  # several batches
    answers = translator.run_all(many)
    assert [answer.source for answer in answers] == many
    for text, answer in zip(TEXTS, answers, strict=False):
        assert translator.run(text).text == answer.text


def test_a_sample_depends_on_its_number_and_not_on_what_stands_beside_it(translator):
    chance = regard.Sample(seed=4)
    many = [TEXTS[number % 4] for number in range(100)]
    answers = translator.run_all(many, chance)
    assert translator.run_all(many[:3], chance)[2].text == answers[2].text
    assert len({answers[number].text for number in range(0, 100, 4)}) > 1


def test_rows_of_an_alignment_sum_to_one_and_name_their_tokens(translator):
    found = translator.run("the boy eats bread", alignment=True).alignment
    if found is not None:
        assert found.weights.shape == (len(found.target), len(found.source))
        np.testing.assert_allclose(found.weights.sum(1), 1, atol=1e-5)
        assert found.source[-1] == "</s>"
        assert found.source_words == ["the", "boy", "eats", "bread"]


@pytest.mark.parametrize("text", ["don't wait...", "it's here", "a--b ...?!"])
def test_every_row_of_a_word_alignment_has_a_name_and_a_number(translator, text):
    ids = [*translator.tokenizer.encode(text), translator.tokenizer.eos_id]
    found = translator.align(ids, ids[:-1])
    assert found.words.shape == (len(found.target_words), len(found.source_words))
    assert np.isfinite(found.words).all()


def test_no_alignment_unless_asked(translator):
    assert translator.run("the boy eats bread").alignment is None


@pytest.mark.parametrize(("text", "length"), [("a " * 5_000, "tokens"), ("a" * 1_000_000, "1,000,000 characters")])
def test_a_text_without_bound_is_refused_before_it_is_read(translator, text, length):
    with pytest.raises(InputError, match="split it into sentences") as caught:
        translator.run(text)
    assert length in str(caught.value)


def test_no_words_are_refused(translator):
    with pytest.raises(InputError, match="has no words"):
        translator.run("")


@pytest.mark.parametrize("text", ["</s>", "<pad><s>", "\x00\x01", "👩‍👩‍👧", "a" * 800, "ñ" * 50, "  spaces  ", "\n"])
def test_hostile_text_is_just_text(translator, text):
    assert isinstance(translator.run(text).text, str)
