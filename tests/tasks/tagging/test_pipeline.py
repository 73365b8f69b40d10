"""A tagger at work: a label for each word, entities as they stand in the text."""

import unicodedata

import pytest
import torch

import regard
from regard.synthetic.stories.story import Stories
from regard.tasks.tagging.pipeline import Tagger

LABELS = ("O", "B-X", "I-X")
SENTENCES = [sentence.split() for story in Stories(seed=4).stories(0, 10) for sentence in story.sentences]


@pytest.fixture(scope="module")
def tagger(make_reader):
    return make_reader("bert-token-classification", labels=LABELS)


@pytest.fixture
def sure(make_reader):
    """One that calls every word a name's beginning, or its rest."""

    def make(label):
        tagger = make_reader("bert-token-classification", labels=LABELS)
        with torch.no_grad():
            tagger.model.head.bias[LABELS.index(label)] = 1000.0
        return tagger

    return make


def test_it_finds_the_names_it_was_trained_on(names):
    tagger = regard.load(names)
    assert isinstance(tagger, Tagger)
    found = tagger.run("Ada  Byron lived in Paris.")
    assert [word.text for word in found.words] == ["Ada", "Byron", "lived", "in", "Paris", "."]
    assert [(one.type, one.text) for one in found.entities] == [("PER", "Ada  Byron"), ("LOC", "Paris")]


def test_a_words_label_is_that_of_its_first_piece(tagger):
    words = ["the", "qzxqzx", "cat"]
    row = tagger.tokenizer.encode_words(words)
    with torch.no_grad():
        likely = tagger.model(torch.tensor([row.ids]))[0].softmax(-1)
    for number, word in enumerate(tagger.tag([words])[0]):
        place = row.word_ids.index(number)
        assert word.text == words[number]
        assert word.label == LABELS[int(likely[place].argmax())]
        assert word.probability == pytest.approx(likely[place].max().item(), abs=1e-5)


def test_many_at_once_are_as_each_alone(tagger):
    found = tagger.tag([*SENTENCES, []])
    assert found.pop() == []
    assert len({word.label for words in found for word in words}) > 1
    for sentence, words in zip(SENTENCES, found, strict=True):
        (alone,) = tagger.tag([sentence])
        assert [word.text for word in words] == sentence
        assert [word.label for word in words] == [word.label for word in alone]
        assert [word.probability for word in words] == pytest.approx([word.probability for word in alone], abs=1e-5)


def test_a_long_sentence_is_read_in_parts_and_loses_no_word(tagger):
    sentence = [word for sentence in SENTENCES[:20] for word in sentence]
    assert len(sentence) > 100
    words = tagger.tag([sentence])[0]
    assert [word.text for word in words] == sentence
    assert all(word.probability > 0 for word in words)
    text = " ".join(sentence)
    assert [word.text for word in tagger.run(text).words] == sentence
    half = len(sentence) // 2  # parts are halves of halves: each of them says what it would say alone
    alone = tagger.tag([sentence[:half]])[0]
    assert [word.label for word in alone] == [word.label for word in words[:half]]
    assert [word.probability for word in alone] == pytest.approx([word.probability for word in words[:half]], abs=1e-5)


def test_entities_are_the_texts_own_letters(sure):
    for text in ("Zoé O'Neil!", unicodedata.normalize("NFD", "Ada Zoé"), "  東京  tower ", "a\u200bb ﬁne"):
        assert [one.text for one in sure("I-X").run(text).entities] == [text.strip()]
        found = sure("B-X").run(text)
        assert [one.text for one in found.entities] == [word.text for word in found.words]
        assert "".join(word.text for word in found.words) == "".join(text.split())
    assert sure("O").run("Ada").entities == []


def test_words_are_those_of_tagged_files(sure):
    text = "Jean-Luc  O'Brien of the U.S. paid 3.5."
    found = sure("I-X").run(text)
    assert [word.text for word in found.words] == ["Jean-Luc", "O'Brien", "of", "the", "U.S.", "paid", "3.5", "."]
    assert [one.text for one in found.entities] == [text]


def test_labels_that_mark_nothing_give_no_entities(make_reader):
    assert make_reader("bert-token-classification", labels=("NOUN", "VERB")).run("the cat slept").entities == []


def test_a_word_of_which_nothing_is_left_is_outside(tagger):
    lone, cat = tagger.tag([["\u0301", "cat"]])[0]
    assert (lone.text, lone.label, lone.probability) == ("\u0301", "O", 0.0)
    assert cat.probability > 0
    assert tagger.run("\u0301").words == []
    assert tagger.run_all([]) == []
