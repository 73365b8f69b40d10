"""A classifier at work: each text gets what it would get alone, in the order given."""

from dataclasses import replace

import pytest
import torch

import regard
from regard import checkpoint
from regard.errors import FolderError, InputError
from regard.synthetic.stories.story import Stories
from regard.tasks.classification.pipeline import Classifier

LABELS = ("low", "middle", "high")
TEXTS = [sentence for story in Stories(seed=3).stories(0, 12) for sentence in story.sentences]
SECONDS = [*TEXTS[7:], *TEXTS[:7]]


@pytest.fixture(scope="module")
def classifier(make_reader):
    return make_reader("bert-sequence-classification", labels=LABELS)


def test_a_folder_is_loaded_with_its_labels(sentiment):
    found = regard.load(sentiment)
    assert isinstance(found, Classifier)
    assert found.labels == ("bad", "good")
    judged = found.run("the film was good")
    assert judged.label in found.labels
    assert judged.score == max(judged.probabilities.values())
    assert sum(judged.probabilities.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("seconds", [None, SECONDS], ids=["texts", "pairs"])
def test_many_at_once_are_as_each_alone(classifier, seconds):
    found = classifier.run_all(TEXTS, seconds)
    assert [one.text for one in found] == TEXTS
    assert len({one.label for one in found}) > 1
    for number, one in enumerate(found):
        second = None if seconds is None else seconds[number]
        alone = classifier.run(TEXTS[number], second)
        assert (one.second, one.label) == (second, alone.label)
        assert one.probabilities == pytest.approx(alone.probabilities, abs=1e-5)


def test_it_says_what_the_model_says(classifier):
    row = classifier.tokenizer.encode(TEXTS[0], TEXTS[1], max_length=40)
    with torch.no_grad():
        wanted = classifier.model(torch.tensor([row.ids]), torch.tensor([row.segment_ids])).softmax(-1)[0]
    judged = classifier.run(TEXTS[0], TEXTS[1])
    assert [judged.probabilities[label] for label in LABELS] == pytest.approx(wanted.tolist(), abs=1e-6)
    assert list(judged.probabilities.values()) == sorted(judged.probabilities.values(), reverse=True)
    assert judged.label == LABELS[int(wanted.argmax())]
    assert judged.probabilities != pytest.approx(classifier.run(TEXTS[1], TEXTS[0]).probabilities, abs=1e-3)


def test_a_score_has_no_classes(make_reader):
    judge = make_reader("bert-sequence-classification")
    found = judge.run_all(TEXTS)
    assert {(one.label, len(one.probabilities)) for one in found} == {(None, 0)}
    assert len({one.score for one in found}) > 10
    assert [one.score for one in found] == pytest.approx([judge.run(text).score for text in TEXTS], abs=1e-5)


def test_long_texts_are_cut_and_counted_or_refused(make_reader):
    classifier = make_reader("bert-sequence-classification", labels=LABELS)
    long = "the cat was tired " * 20
    pieces = len(classifier.tokenizer.encode(long).ids)
    classifier.run_all(["the cat", long])
    assert classifier.truncated == 1
    with pytest.raises(InputError, match=rf"text 2 has {pieces} tokens, this model reads 40"):
        classifier.run_all(["the cat", long], truncate=False)


def test_what_it_was_trained_on_is_what_it_reads(sentiment, duplicates, classifier):
    single, double = regard.load(sentiment), regard.load(duplicates)
    assert (single.pairs, single.max_length) == (False, 48)
    assert (double.pairs, double.max_length) == (True, 12)
    assert (classifier.pairs, classifier.max_length) == (None, 40)  # nobody knows
    with pytest.raises(InputError, match="got pairs, but this model reads one text at a time"):
        single.run("the film", "was good")
    with pytest.raises(InputError, match="got single texts, but this model reads pairs"):
        double.run_all(["the cat"])
    assert double.run_all([], []) == single.run_all([]) == []


def test_a_text_is_cut_where_those_of_training_were(duplicates):
    found = regard.load(duplicates)
    long = "the cat was too tired to go on and slept"
    row = found.tokenizer.encode(long, "the dog", max_length=12)
    with torch.no_grad():
        wanted = found.model(torch.tensor([row.ids]), torch.tensor([row.segment_ids]))[0]
    assert found.logits([long], ["the dog"])[0].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    assert found.truncated == 1


@pytest.mark.parametrize(
    ("name", "value"), [("pairs", 1), ("max_length", "12"), ("max_length", 2), ("max_length", True)]
)
def test_facts_that_are_none_are_named(sentiment, name, value):
    folder = checkpoint.load(sentiment)
    with pytest.raises(FolderError, match=rf"config.json: task.{name} is {value!r}, wanted"):
        Classifier.open(replace(folder, task={**folder.task, name: value}))


def test_none_and_pairs_that_cannot_be(make_reader, classifier):
    assert classifier.run_all([]) == []
    with pytest.raises(InputError, match="got pairs, but this model reads one text at a time"):
        make_reader("bert-sequence-classification", labels=LABELS, num_segments=1).run("a", "b")
