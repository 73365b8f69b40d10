"""Scores of classifiers and taggers: scikit-learn's, of the models' own answers; and what cannot be scored."""

import json
import math

import pytest
from scipy import stats
from sklearn import metrics as sklearn

import regard
from regard.checkpoint import SETTINGS
from regard.errors import ConfigError, DataError
from regard.metrics.tagging import extract_entities
from regard.synthetic.stories.story import Stories
from regard.tasks.classification.evaluate import score_labels, score_tags
from regard.tasks.translation.evaluate import mean_of, score_folders
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
    found = score_labels(classifier, tmp_path, [table(LABELS)])
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
        assert (one["wanted"], one["found"]) == (wanted[TEXTS.index(one["text"])], chosen[TEXTS.index(one["text"])])
        assert one["wanted"] != one["found"]


def test_numbers_are_scored_by_their_correlation(make_reader, table, tmp_path):
    judge = make_reader("bert-sequence-classification")
    wanted = [number % 7 / 2 for number in range(len(TEXTS))]
    scores = [one.score for one in judge.run_all(TEXTS)]
    found = score_labels(judge, tmp_path, [table([n / 2 for n in range(7)])])
    assert found["pearson"] == pytest.approx(stats.pearsonr(scores, wanted).statistic, abs=1e-6)
    assert found["spearman"] == pytest.approx(stats.spearmanr(scores, wanted).statistic, abs=1e-6)
    apart = sorted((abs(a - b) for a, b in zip(scores, wanted, strict=True)), reverse=True)
    assert [abs(float(one["found"]) - float(one["wanted"])) for one in found["worst"]] == pytest.approx(
        apart[:5], abs=1e-3
    )


def test_only_the_first_so_many(classifier, table, tmp_path):
    assert score_labels(classifier, tmp_path, [table(LABELS)], most=7)["rows"] == 7


def test_rows_that_lose_their_ends_and_bad_rows_are_told(classifier, table, tmp_path):
    path = table(LABELS, [*TEXTS[:20], "the cat was tired " * 20])
    path.write_text(path.read_text() + "one cell alone\n")
    found = score_labels(classifier, tmp_path, [path])
    assert (found["rows"], found["cut"][:6]) == (21, "1 rows")
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
            score_labels(model, tmp_path, [path])
    with pytest.raises(DataError, match="nothing was held out from it; name the data"):
        score_labels(classifier, tmp_path, [])


def test_a_row_that_the_data_repeat_is_told_once_among_the_worst(classifier, make_reader, table, tmp_path):
    for model, labels in ((classifier, LABELS), (make_reader("bert-sequence-classification"), ["0", "2.5", "1"])):
        found = score_labels(model, tmp_path, [table(labels, [text for text in TEXTS for _ in range(3)])])
        told = [(one["text"], one["wanted"]) for one in found["worst"]]
        assert len(told) == len(set(told)) == 5


ENTAILMENT = ("entailment", "neutral", "contradiction")


def test_mnli_is_scored_on_two_parts_and_ax_on_its_own(make_reader, tmp_path):
    classifier = make_reader("bert-sequence-classification", labels=ENTAILMENT)
    found = score_labels(classifier, tmp_path, [write_glue(tmp_path / "MNLI", "mnli", 30)])
    assert found.pop("left_out") == ["left out: 2 with the label '-', without agreement between annotators"]
    assert {name.partition("_")[0] for name in found} == {"matched", "mismatched"}
    assert found["matched_rows"] == found["mismatched_rows"] == 15
    assert {"matched_accuracy", "mismatched_accuracy", "matched_confusion", "mismatched_worst"} <= found.keys()
    told = {"recipe": "glue", "data": ["x"], "settings": {"data": {"task": "mnli"}}}
    (tmp_path / SETTINGS).write_text(json.dumps(told))
    assert "matthews" in score_labels(classifier, tmp_path, [write_glue(tmp_path / "AX", "ax", 30)])
    renamed = write_glue(tmp_path / "mine", "mnli", 30)
    assert "matched_accuracy" in score_labels(classifier, tmp_path, [renamed])


def test_what_a_run_held_out_is_what_it_was_judged_on(sentiment):
    found = score_labels(regard.load(sentiment), sentiment, [])
    lines = [json.loads(line) for line in (sentiment / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if "validation_accuracy" in line][-1]
    assert found["accuracy"] == pytest.approx(last["validation_accuracy"])
    assert found["matthews"] == pytest.approx(last["validation_matthews"])


def test_where_training_stops_at_long_rows_so_does_scoring(duplicates, tmp_path):
    path = tmp_path / "test.csv"
    path.write_text(f"text,second,label\nthe cat,the dog,no\nthe cat,{'the dog ' * 20},no\n")
    with pytest.raises(DataError, match=r"test.csv:3 has \d+ pieces, this model reads 12 .* data.too_long=stop"):
        score_labels(regard.load(duplicates), duplicates, [path])
    assert score_labels(regard.load(duplicates), duplicates, [path], most=1)["rows"] == 1


def test_data_that_changed_since_is_named(train_here, tiny_reader, tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"text {number},{'ab'[number % 2]}\n" for number in range(60)]
    path.write_text("".join(["text,label\n", *rows]))
    folder = train_here("classifier", *tiny_reader, "model.vocab_size=100", "training.steps=1", data=[path])
    path.write_text(path.read_text().replace(",b", ",c"))
    with pytest.raises(
        DataError, match=r"data.csv has changed since .*classifier was trained on it, .*; name the data"
    ):
        score_labels(regard.load(folder), folder, [])
    written = json.loads((folder / "run.json").read_text())
    del written["contents"]  # as in a run of before
    (folder / "run.json").write_text(json.dumps(written))
    with pytest.raises(DataError, match="what was held out, as it is now: .*data.csv:.* has the label 'c'"):
        score_labels(regard.load(folder), folder, [])


def test_the_columns_may_have_other_names_than_in_training(sentiment, tmp_path):
    classifier = regard.load(sentiment)
    path = tmp_path / "test.csv"
    rows = [f"{number},{classifier.labels[0]},{text.rstrip('.')}\n" for number, text in enumerate(TEXTS[:9])]
    path.write_text("".join(["number,truth,words\n", *rows, "9,,no label\n"]))
    with pytest.raises(DataError, match="data.label"):
        score_folders([sentiment], [path], [None])
    told = ["data.text=words", "data.label=truth"]
    found = score_folders([sentiment], [path], [None], assignments=told)
    assert (found["rows"], len(found["bad_lines"])) == (9, 2)
    with pytest.raises(DataError, match=r"test.csv:11: empty label"):
        score_folders([sentiment], [path], [None], assignments=[*told, "data.on_error=stop"])
    with pytest.raises(ConfigError, match=r"unknown key data.lable; did you mean data.label"):
        score_folders([sentiment], [path], [None], assignments=["data.lable=truth"])


def test_a_folder_of_glue_may_be_told_its_task(make_reader, tmp_path):
    classifier, folder = (
        make_reader("bert-sequence-classification", labels=ENTAILMENT),
        write_glue(tmp_path / "mine", "mnli", 30),
    )
    with pytest.raises(DataError, match="data.task=… says which"):
        score_labels(classifier, tmp_path, [folder])
    assert "matched_accuracy" in score_labels(classifier, tmp_path, [folder], assignments=["data.task=mnli"])


# ------------------------------------------------ taggers


def test_the_columns_of_tags_may_be_told(names, people, tmp_path):
    tagger = regard.load(names)
    turned = tmp_path / "turned.conll"
    lines = [line.split() for line in people.read_text().splitlines()]
    turned.write_text("".join(" ".join([*reversed(words), "x"]).strip() + "\n" if words else "\n" for words in lines))
    told = score_tags(tagger, names, [turned], assignments=["data.word_column=2", "data.label_column=1"])
    assert told == score_tags(tagger, names, [people])


def test_tags_are_scored_by_whole_entities(names, people):
    tagger = regard.load(names)
    found = score_tags(tagger, names, [people])
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
    assert score_tags(tagger, names, [], most=3)["sentences"] == 3


def test_long_sentences_score_in_training_as_afterwards(train_here, tiny_reader, tmp_path):
    path = tmp_path / "long.conll"
    name = "".join(f"word{n} I-X\n" for n in range(60))  # one name over several rows; soon all is called a name
    path.write_text("\n".join(f"{n} O\n{name}" for n in range(40)))
    folder = train_here("tagger", *tiny_reader, "model.vocab_size=100", "training.steps=8", data=[path])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if "validation_f1" in line][-1]
    found = score_tags(regard.load(folder), folder, [])
    for name in ("f1", "precision", "recall", "accuracy"):
        assert found[name] == pytest.approx(last[f"validation_{name}"]), name


def test_a_tag_the_model_does_not_have_is_named(names, tmp_path):
    (tmp_path / "test.conll").write_text("Ada B-PER\nran O\n\nRome B-CITY\n")
    with pytest.raises(DataError, match=r"test.conll: 'Rome' in sentence 2 has the tag 'B-CITY'"):
        score_tags(regard.load(names), names, [tmp_path / "test.conll"])


def test_means_are_of_what_all_runs_have():
    found = mean_of([{"f1": 0.5, "f1_X": 0.1}, {"f1": 0.7}])
    assert found["f1"] == pytest.approx(0.6)
    assert found["deviation"] == pytest.approx({"f1": math.sqrt(0.02)})


def test_means_stand_in_the_order_of_the_scores():
    one = {"pairs": 3, "loss": 1.0, "bleu": 2.0, "signature": "s"}
    assert list(mean_of([one, one | {"bleu": 3.0}])) == ["runs", "pairs", "loss", "bleu", "signature", "deviation"]
