"""Metrics of classifiers are scikit-learn's on the model's own answers; data that cannot be scored is an error."""

import json

import pytest
from scipy import stats
from sklearn import metrics as sklearn

import regard
from regard.checkpoint import SETTINGS
from regard.errors import ConfigError, DataError
from regard.synthetic.stories.story import Stories
from regard.tasks.base import EvaluationRequest
from regard.tasks.classification.evaluate import evaluate
from regard.tasks.evaluation import evaluate_folders
from tests.data.glue_folders import write_glue

LABELS = ("bad", "fair", "good")
TEXTS = [sentence for story in Stories(seed=5).stories(0, 15) for sentence in story.sentences]


@pytest.fixture(scope="module")
def classifier(make_reader):
    return make_reader("bert-sequence-classification", labels=LABELS)


@pytest.fixture
def table(tmp_path):
    def write(labels, texts=TEXTS, name="test.tsv"):
        rows = [f"{text}\t{labels[number % len(labels)]}" for number, text in enumerate(texts)]
        (tmp_path / name).write_text("\n".join(["text\tlabel", *rows, ""]), encoding="utf-8")
        return tmp_path / name

    return write


def test_classes_are_scored_as_scikit_learn_scores_them(classifier, table, tmp_path):
    wanted = [LABELS[number % 3] for number in range(len(TEXTS))]
    answers = classifier.run_all(TEXTS)
    chosen = [one.label for one in answers]
    found = evaluate(classifier, EvaluationRequest(tmp_path, [table(LABELS)]))
    assert found["rows"] == len(TEXTS)
    assert found["accuracy"] == pytest.approx(sklearn.accuracy_score(wanted, chosen))
    assert found["macro_f1"] == pytest.approx(sklearn.f1_score(wanted, chosen, average="macro", zero_division=0))
    assert found["matthews"] == pytest.approx(sklearn.matthews_corrcoef(wanted, chosen))
    counts = sklearn.confusion_matrix(wanted, chosen, labels=list(LABELS)).tolist()
    assert found["confusion"][0][1:] == list(LABELS)
    assert [[int(cell) for cell in row[1:]] for row in found["confusion"][1:]] == counts
    wrong = [one.score for one, label in zip(answers, wanted, strict=True) if one.label != label]
    assert 5 < len(wrong) < len(TEXTS)
    assert [one["probability"] for one in found["worst"]] == pytest.approx(sorted(wrong)[:-6:-1], abs=1e-3)
    for one in found["worst"]:
        assert (one["label"], one["predicted"]) == (wanted[TEXTS.index(one["text"])], chosen[TEXTS.index(one["text"])])
        assert one["label"] != one["predicted"]


def test_numbers_are_scored_by_their_correlation(make_reader, table, tmp_path):
    judge = make_reader("bert-sequence-classification")
    wanted = [number % 7 / 2 for number in range(len(TEXTS))]
    scores = [one.score for one in judge.run_all(TEXTS)]
    found = evaluate(judge, EvaluationRequest(tmp_path, [table([n / 2 for n in range(7)])]))
    assert found["pearson"] == pytest.approx(stats.pearsonr(scores, wanted).statistic, abs=1e-6)
    assert found["spearman"] == pytest.approx(stats.spearmanr(scores, wanted).statistic, abs=1e-6)
    apart = sorted((abs(a - b) for a, b in zip(scores, wanted, strict=True)), reverse=True)
    assert [abs(float(one["predicted"]) - float(one["label"])) for one in found["worst"]] == pytest.approx(
        apart[:5], abs=1e-3
    )


def test_only_the_first_so_many(classifier, table, tmp_path):
    assert evaluate(classifier, EvaluationRequest(tmp_path, [table(LABELS)], limit=7))["rows"] == 7


def test_rows_that_lose_their_ends_and_bad_rows_are_told(classifier, table, tmp_path):
    path = table(LABELS, [*TEXTS[:20], "the cat was tired " * 20])
    path.write_text(path.read_text() + "one cell alone\n")
    found = evaluate(classifier, EvaluationRequest(tmp_path, [path]))
    assert (found["rows"], found["truncated"][:6]) == (21, "1 rows")
    assert "1 (" in found["bad_lines"][0]


def test_what_cannot_be_scored_is_named(classifier, make_reader, table, tmp_path):
    judge = make_reader("bert-sequence-classification")
    for model, path, wrong in (
        (classifier, table(["bad", "ugly"], name="a.tsv"), "a.tsv:3 has the label 'ugly'.*one of bad, fair, good"),
        (judge, table(["1", "high"], name="b.tsv"), "b.tsv:3 has the label 'high', wanted a number"),
        (judge, table(["1", "nan"], name="c.tsv"), "c.tsv:3 has the label 'nan', wanted a number"),
        (judge, write_glue(tmp_path / "SST-2", "sst2", 6), "SST-2 has classes, but this model gives a score"),
        (classifier, write_glue(tmp_path / "STS-B", "stsb", 6), "STS-B has a score, but this model gives classes"),
        (classifier, write_glue(tmp_path / "RTE", "rte", 6), "RTE, dev: .*dev.tsv:2 has the label .*entailment'"),
    ):
        with pytest.raises(DataError, match=wrong):
            evaluate(model, EvaluationRequest(tmp_path, [path]))
    with pytest.raises(DataError, match="it has no validation data; name the data"):
        evaluate(classifier, EvaluationRequest(tmp_path))


def test_a_row_that_the_data_repeat_is_told_once_among_the_worst(classifier, make_reader, table, tmp_path):
    for model, labels in ((classifier, LABELS), (make_reader("bert-sequence-classification"), ["0", "2.5", "1"])):
        found = evaluate(
            model, EvaluationRequest(tmp_path, [table(labels, [text for text in TEXTS for _ in range(3)])])
        )
        told = [(one["text"], one["label"]) for one in found["worst"]]
        assert len(told) == len(set(told)) == 5


ENTAILMENT = ("entailment", "neutral", "contradiction")


def test_mnli_is_scored_on_two_parts_and_ax_on_its_own(make_reader, tmp_path):
    classifier = make_reader("bert-sequence-classification", labels=ENTAILMENT)
    found = evaluate(classifier, EvaluationRequest(tmp_path, [write_glue(tmp_path / "MNLI", "mnli", 30)]))
    assert found.pop("left_out") == ["left out: 2 with the label '-', without agreement between annotators"]
    assert {name.partition("_")[0] for name in found} == {"matched", "mismatched"}
    assert found["matched_rows"] == found["mismatched_rows"] == 15
    assert {"matched_accuracy", "mismatched_accuracy", "matched_confusion", "mismatched_worst"} <= found.keys()
    told = {"recipe": "glue", "data": ["x"], "settings": {"data": {"task": "mnli"}}}
    (tmp_path / SETTINGS).write_text(json.dumps(told))
    assert "matthews" in evaluate(classifier, EvaluationRequest(tmp_path, [write_glue(tmp_path / "AX", "ax", 30)]))
    renamed = write_glue(tmp_path / "mine", "mnli", 30)
    assert "matched_accuracy" in evaluate(classifier, EvaluationRequest(tmp_path, [renamed]))


def test_what_a_run_held_out_is_what_it_was_judged_on(sentiment):
    found = evaluate(regard.load(sentiment), EvaluationRequest(sentiment))
    lines = [json.loads(line) for line in (sentiment / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if "validation_accuracy" in line][-1]
    assert found["accuracy"] == pytest.approx(last["validation_accuracy"])
    assert found["matthews"] == pytest.approx(last["validation_matthews"])


def test_where_training_stops_at_long_rows_so_does_scoring(duplicates, tmp_path):
    path = tmp_path / "test.csv"
    path.write_text(f"text,second,label\nthe cat,the dog,no\nthe cat,{'the dog ' * 20},no\n")
    with pytest.raises(DataError, match=r"test.csv:3 has \d+ tokens, this model reads 12 .* data.too_long=stop"):
        evaluate(regard.load(duplicates), EvaluationRequest(duplicates, [path]))
    assert evaluate(regard.load(duplicates), EvaluationRequest(duplicates, [path], limit=1))["rows"] == 1


def test_data_that_changed_since_is_named(train_here, tiny_reader, tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"text {number},{'ab'[number % 2]}\n" for number in range(60)]
    path.write_text("".join(["text,label\n", *rows]))
    folder = train_here("classifier", *tiny_reader, "model.vocab_size=100", "training.steps=1", data=[path])
    path.write_text(path.read_text().replace(",b", ",c"))
    with pytest.raises(
        DataError, match=r"data.csv has changed since .*classifier was trained on it, .*; name the data"
    ):
        evaluate(regard.load(folder), EvaluationRequest(folder))
    written = json.loads((folder / "run.json").read_text())
    del written["contents"]  # as in a run of before
    (folder / "run.json").write_text(json.dumps(written))
    with pytest.raises(DataError, match="the validation data: .*data.csv:.* has the label 'c'"):
        evaluate(regard.load(folder), EvaluationRequest(folder))


def test_the_columns_may_have_other_names_than_in_training(sentiment, tmp_path):
    classifier = regard.load(sentiment)
    path = tmp_path / "test.csv"
    rows = [f"{number},{classifier.labels[0]},{text.rstrip('.')}\n" for number, text in enumerate(TEXTS[:9])]
    path.write_text("".join(["number,truth,words\n", *rows, "9,,no label\n"]))
    with pytest.raises(DataError, match="data.label"):
        evaluate_folders([sentiment], [path], [None])
    told = ["data.text=words", "data.label=truth"]
    found = evaluate_folders([sentiment], [path], [None], assignments=told)
    assert (found["rows"], len(found["bad_lines"])) == (9, 2)
    with pytest.raises(DataError, match=r"test.csv:11: empty label"):
        evaluate_folders([sentiment], [path], [None], assignments=[*told, "data.on_error=stop"])
    with pytest.raises(ConfigError, match=r"unknown key data.lable; did you mean data.label"):
        evaluate_folders([sentiment], [path], [None], assignments=["data.lable=truth"])


def test_a_folder_of_glue_may_be_told_its_task(make_reader, tmp_path):
    classifier, folder = (
        make_reader("bert-sequence-classification", labels=ENTAILMENT),
        write_glue(tmp_path / "mine", "mnli", 30),
    )
    with pytest.raises(DataError, match="set data.task=…"):
        evaluate(classifier, EvaluationRequest(tmp_path, [folder]))
    assert "matched_accuracy" in evaluate(
        classifier, EvaluationRequest(tmp_path, [folder], assignments=["data.task=mnli"])
    )
