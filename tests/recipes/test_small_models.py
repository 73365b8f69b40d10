"""The recipes of the models before attention: each trains, is loaded again, and is used."""

import math

import pytest

import regard
from regard import recipes
from regard.tasks.base import EvaluationRequest
from regard.tasks.language_modeling.evaluate import evaluate
from regard.tasks.recipe import TrainingInputs, train_recipe

VERSE = "the rat that ate the malt that lay in the house that Jack built. "


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    path.write_text(VERSE * 40, encoding="utf-8")
    return path


QUICK = ("training.steps=40", "training.warmup=1", "training.learning_rate=0.01", "model.width=32")


def trained(name, path, folder, *settings):
    reports = list(train_recipe(recipes.find(name), TrainingInputs([path]), settings, folder))
    return regard.load(folder), reports


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ngram", ["model.order=4"]),
        ("bengio", ["training.steps=60", "training.max_tokens=512", "model.context=16"]),
        ("rnn-lm", ["training.steps=60", "training.max_tokens=512", "model.context=16", "model.width=48"]),
    ],
)
def test_a_language_model_learns_a_verse_and_continues_it(name, settings, text, tmp_path):
    generator, reports = trained(name, text, tmp_path / "run", *settings)
    scores = evaluate(generator, EvaluationRequest(tmp_path / "run", [text], []))
    assert scores["loss"] < 0.6 * math.log(generator.tokenizer.vocab_size)
    assert math.isfinite(reports[-1].validation["loss"])
    assert generator.run("that Jack b", regard.Greedy(), max_new_tokens=3).text == "uil"


def test_an_ngram_model_is_fitted_by_counting_and_trained_once(text, tmp_path):
    _, reports = trained("ngram", text, tmp_path / "run")
    assert any("different n-grams of 1 to 6 tokens" in report.note for report in reports)
    _, again = trained("ngram", text, tmp_path / "run")
    assert "trained already" in again[-1].note


def test_a_recurrent_classifier_tells_two_kinds_of_texts_apart(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = [
        f"the {noun} was {word},{label}"
        for noun in ("film", "book", "play", "song", "meal", "room", "walk", "trip")
        for word, label in (("fine", "good"), ("lovely", "good"), ("poor", "bad"), ("dull", "bad"))
    ]
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    classifier, _ = trained("rnn-classifier", path, tmp_path / "run", *QUICK)
    assert classifier.run("the evening was lovely").label == "good"
    assert classifier.run("the evening was dull").label == "bad"


def test_a_recurrent_tagger_tags_a_name_by_the_word_before_it(tmp_path):
    path = tmp_path / "names.conll"
    names = ("Ada", "Bob", "Eve", "Ida", "Max", "Tom", "Una", "Zoe", "Kim", "Lea", "Jan", "Ben")
    path.write_text("".join(f"I O\nmet O\n{name} B-PER\ntoday O\n\n" for name in names), encoding="utf-8")
    tagger, _ = trained("rnn-tagger", path, tmp_path / "run", f"data.dev={path}", *QUICK)
    assert [word.label for word in tagger.run("I met Ada today").words] == ["O", "O", "B-PER", "O"]
