"""Metrics of taggers: by whole entities, and the same in training as afterwards."""

import json

import pytest

import regard
from regard.errors import DataError
from regard.metrics.tagging import extract_entities
from regard.tasks.base import EvaluationRequest
from regard.tasks.tagging.evaluate import evaluate


def test_the_columns_of_tags_may_be_told(names, people, tmp_path):
    tagger = regard.load(names)
    turned = tmp_path / "turned.conll"
    lines = [line.split() for line in people.read_text().splitlines()]
    turned.write_text("".join(" ".join([*reversed(words), "x"]).strip() + "\n" if words else "\n" for words in lines))
    told = evaluate(
        tagger, EvaluationRequest(names, [turned], assignments=["data.word_column=2", "data.label_column=1"])
    )
    assert told == evaluate(tagger, EvaluationRequest(names, [people]))


def test_tags_are_scored_by_whole_entities(names, people):
    tagger = regard.load(names)
    found = evaluate(tagger, EvaluationRequest(names, [people]))
    sentences = [[line.split() for line in block.split("\n")] for block in people.read_text().strip().split("\n\n")]
    answers = [[word.label for word in words] for words in tagger.tag([[w for w, _ in one] for one in sentences])]
    truth = [[label for _, label in one] for one in sentences]
    right = sum(a == b for one, other in zip(answers, truth, strict=True) for a, b in zip(one, other, strict=True))
    assert found["accuracy"] == pytest.approx(right / sum(map(len, truth)))
    one, other = (
        {(n, *e) for n, labels in enumerate(side) for e in extract_entities(labels)} for side in (answers, truth)
    )
    assert found["f1"] == pytest.approx(2 * len(one & other) / (len(one) + len(other)))
    assert {"f1_PER", "f1_LOC"} <= found.keys()
    assert evaluate(tagger, EvaluationRequest(names, limit=3))["sentences"] == 3


def test_long_sentences_score_in_training_as_afterwards(train_here, tiny_reader, tmp_path):
    path = tmp_path / "long.conll"
    name = "".join(f"word{n} I-X\n" for n in range(60))  # one name over several rows; soon all is called a name
    path.write_text("\n".join(f"{n} O\n{name}" for n in range(40)))
    folder = train_here("tagger", *tiny_reader, "model.vocab_size=100", "training.steps=8", data=[path])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if "validation_f1" in line][-1]
    found = evaluate(regard.load(folder), EvaluationRequest(folder))
    for name in ("f1", "precision", "recall", "accuracy"):
        assert found[name] == pytest.approx(last[f"validation_{name}"]), name


def test_a_tag_the_model_does_not_have_is_named(names, tmp_path):
    (tmp_path / "test.conll").write_text("Ada B-PER\nran O\n\nRome B-CITY\n")
    with pytest.raises(DataError, match=r"test.conll: 'Rome' in sentence 2 has the tag 'B-CITY'"):
        evaluate(regard.load(names), EvaluationRequest(names, [tmp_path / "test.conll"]))
