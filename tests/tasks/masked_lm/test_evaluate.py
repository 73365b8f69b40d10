"""A BERT's scores: the same hidden words every time, on the user's text and on what was held out."""

import json
import math
from functools import partial

import pytest

import regard
from regard.errors import DataError
from regard.synthetic.stories.story import Stories
from regard.tasks.base import EvaluationRequest
from regard.tasks.masked_lm import evaluate as masked_scoring
from regard.tasks.masked_lm.coreference import probe_coreference
from regard.tasks.masked_lm.evaluate import evaluate
from regard.tasks.masked_lm.head_ablation import ablate_heads


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "stories.txt"
    path.write_text("\n\n".join(story.text for story in Stories(seed=8).stories(0, 40)))
    return path


@pytest.mark.parametrize("kind", ["bert-pretraining", "bert-masked-lm"])
def test_the_users_own_text_is_scored_the_same_twice(make_reader, texts, tmp_path, kind):
    filler = make_reader(kind)
    found = evaluate(filler, EvaluationRequest(tmp_path, [texts]))
    assert found == evaluate(filler, EvaluationRequest(tmp_path, [texts]))
    assert (kind == "bert-pretraining") == ("next_sentence_accuracy" in found)
    assert 0 <= found["masked_accuracy"] < 0.5
    assert "coreference_probe_accuracy" not in found
    if kind == "bert-masked-lm":
        assert found["masked_perplexity"] == pytest.approx(math.exp(found["loss"]), rel=1e-5)


def test_it_may_be_told_where_a_line_has_its_text(make_reader, tmp_path):
    filler, lines = make_reader("bert-masked-lm"), [story.text for story in Stories(seed=8).stories(0, 20)]
    for field in ("text", "body"):
        (tmp_path / f"{field}.jsonl").write_text("".join(json.dumps({field: line}) + "\n" for line in lines))
    found = evaluate(filler, EvaluationRequest(tmp_path, [tmp_path / "body.jsonl"], assignments=["data.field=body"]))
    assert found == evaluate(filler, EvaluationRequest(tmp_path, [tmp_path / "text.jsonl"]))


def test_bad_lines_are_left_out_and_counted(make_reader, tmp_path):
    stories = [story.text for story in Stories(seed=8).stories(0, 20)]
    good = [json.dumps({"text": text}) + "\n" for text in stories]
    (tmp_path / "good.jsonl").write_text("".join(good))
    (tmp_path / "mixed.jsonl").write_text("".join(f"{line}not JSON\n" for line in good))
    filler = make_reader("bert-masked-lm")
    found = evaluate(filler, EvaluationRequest(tmp_path, [tmp_path / "mixed.jsonl"]))
    assert found.pop("bad_lines")[0] == "bad lines left out: 20 (bad JSON 20); the first:"
    assert found == evaluate(filler, EvaluationRequest(tmp_path, [tmp_path / "good.jsonl"]))


def test_only_the_first_so_many_rows(make_reader, texts, tmp_path):
    assert evaluate(make_reader("bert-masked-lm"), EvaluationRequest(tmp_path, [texts], limit=5))["rows"] == 5


def test_one_document_has_no_next_sentence_and_that_is_said(make_reader, tmp_path):
    (tmp_path / "one.txt").write_text("the cat was tired . it slept .\n")
    found = evaluate(make_reader("bert-pretraining"), EvaluationRequest(tmp_path, [tmp_path / "one.txt"]))
    assert "next_sentence_accuracy" not in found
    assert found["next_sentence"].startswith("not scored")
    assert math.isfinite(found["loss"])


def test_what_a_run_on_stories_held_out_and_what_it_means(reader, monkeypatch):
    monkeypatch.setattr(masked_scoring, "probe_coreference", partial(probe_coreference, num_training=60, num_test=30))
    monkeypatch.setattr(masked_scoring, "ablate_heads", partial(ablate_heads, num_training=20, num_test=20))
    filler = regard.load(reader)
    found = evaluate(filler, EvaluationRequest(reader))
    assert found == evaluate(filler, EvaluationRequest(reader))
    assert found["coreference_sentences"] == 30
    assert {
        "masked_accuracy",
        "next_sentence_accuracy",
        "coreference_probe_accuracy",
        "coreference_attention_accuracy",
        "coreference_heads",
        "coreference_probe_without_these_heads",
        "coreference_probe_without_other_heads",
    } <= found.keys()


def test_a_folder_that_held_nothing_out_is_named(make_reader, tmp_path):
    with pytest.raises(DataError, match="it has no validation data; name the data"):
        evaluate(make_reader("bert-masked-lm"), EvaluationRequest(tmp_path))
