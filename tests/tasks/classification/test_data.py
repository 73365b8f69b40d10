"""Labeled texts, split: which labels there are, when they are scores, and what is wrong with them."""

import pytest

from regard.data.readers.glue import GLUE
from regard.data.readers.labeled import LabeledText
from regard.errors import DataError
from regard.tasks.classification.data import (
    GlueDataConfig,
    LabeledDataConfig,
    check_labels,
    check_scores,
    labels_of,
    metrics_of,
    read_corpus,
    read_glue_corpus,
)
from tests.data.glue_folders import write_glue


@pytest.fixture
def table(tmp_path):
    """A file with these rows."""

    def write(rows, name="data.csv", header="text,label"):
        path = tmp_path / name
        path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        return path

    return write


def labeled(*labels):
    return [LabeledText(f"text {number}", None, label) for number, label in enumerate(labels)]


def numbered(labels, count=120):
    return [f"text {number},{labels[number % len(labels)]}" for number in range(count)]


def test_numbers_by_value_then_words_by_the_alphabet():
    assert labels_of(labeled("10", "9", "-1", "b", "a", "9", "1e1")) == ("-1", "9", "10", "1e1", "a", "b")


def test_one_class_is_none():
    with pytest.raises(DataError, match="all 3 rows have the label 'same'; wanted two classes"):
        labels_of(labeled("same", "same", "same"))


def test_a_label_a_row_is_no_label():
    many = labeled(*(f"name {number}" for number in range(60)))
    with pytest.raises(DataError, match=r"60 different labels in 60 rows; is data.label=… the right column"):
        labels_of(many)
    assert len(labels_of(many * 5)) == 60  # many, but each of them often


def test_a_label_nobody_knows_is_named_with_its_row():
    with pytest.raises(DataError, match=r"dev.csv: row 2 has the label 'ugly'.*wanted one of bad, good"):
        check_labels(labeled("bad", "ugly"), ("bad", "good"), "dev.csv")


def test_a_row_of_what_is_held_out_is_named_by_its_line(table):
    first, second = table(numbered("ab")), table(['"in two\nlines",a', *numbered("ab")], "more.csv")
    found = read_corpus([first, second], LabeledDataConfig(validation=0.3))
    rows = [*found.training, *found.validation["validation"]]
    assert len({row.location for row in rows}) == 241
    for row in rows:
        assert row.text.split("\n")[-1] in row.file.read_text().splitlines()[row.line - 1 + row.text.count("\n")]
    row = found.validation["validation"][5]
    with pytest.raises(DataError, match=rf"held out: {row.location} has the label '{row.label}'"):
        check_labels([row], ("x", "y"), "held out")
    with pytest.raises(DataError, match=rf"held out: {row.location} has the label '{row.label}', wanted a number"):
        check_scores([row], "held out")


def test_the_same_text_is_on_one_side(table):
    rows = [
        f"{text},{label}" for number in range(100) for text in (f"Text {number}", f"text  {number}") for label in "ab"
    ]
    found = read_corpus([table(rows)], LabeledDataConfig(validation=0.3))
    sides = [
        {" ".join(row.text.casefold().split()) for row in side}
        for side in (found.training, found.validation["validation"])
    ]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == pytest.approx(30, abs=15)
    assert (found.labels, found.metrics) == (("a", "b"), ("accuracy", "f1_b", "matthews"))
    assert metrics_of(("x", "y", "z")) == ("accuracy", "macro_f1", "matthews")


SCORED = {
    "fractions": (["1", "2.5"], "auto", True),
    "few whole numbers": (["0", "1", "2"], "auto", False),
    "whole, with a dot": (["0.0", "1.0"], "auto", False),
    "many whole numbers": ([str(n) for n in range(21)], "auto", True),
    "as many as there are classes": ([str(n) for n in range(20)], "auto", False),
    "a word among them": (["1.5", "2.5", "high"], "auto", False),
    "asked for": (["0", "1"], "score", True),
    "not asked for": (["1.5", "2.5"], "classes", False),
    "not a number": (["1.5", "nan"], "auto", False),
}


@pytest.mark.parametrize("case", SCORED)
def test_when_a_label_is_a_score(table, case):
    labels, kind, score = SCORED[case]
    found = read_corpus([table(numbered(labels))], LabeledDataConfig(kind=kind))
    assert (found.labels == ()) == score
    assert (found.metrics == ("pearson", "spearman")) == score
    assert any("training a score" in note for note in found.notes) == score


def test_words_are_no_scores(table):
    with pytest.raises(DataError, match=r"data.kind=score, but 'bad' is not a number"):
        read_corpus([table(numbered(["1", "bad"]))], LabeledDataConfig(kind="score"))


def test_a_dev_file_has_known_labels_numbers_and_pairs_as_what_is_learned_from(table, tmp_path):
    classes, scores = table(numbered(["bad", "good"])), table(numbered(["1.5", "2"]), "scores.csv")
    for training, dev, wrong in (
        (classes, table(["x,good", "y,ugly"], "a.csv"), "the held-out part: .*a.csv:3 has the label 'ugly'"),
        (scores, table(["x,1", "y,high"], "b.csv"), "b.csv:3 has the label 'high', wanted a number"),
        (scores, table(["x,1", "y,inf"], "c.csv"), "c.csv:3 has the label 'inf', wanted a number"),
        (
            classes,
            table(["x,z,bad", "y,z,good"], "d.csv", "text,second,label"),
            "d.csv has pairs, but the training data has",
        ),
        (classes, tmp_path / "none.csv", "none.csv: no such file"),
    ):
        with pytest.raises(DataError, match=wrong):
            read_corpus([training], LabeledDataConfig(dev=str(dev)))
    found = read_corpus([classes], LabeledDataConfig(dev=str(table(["x,good"], "e.csv"))))
    assert (len(found.training), len(found.validation["validation"])) == (120, 1)


def test_the_columns_that_are_read_are_told(table):
    pairs = [f"text {number},other,{'ab'[number % 2]}" for number in range(120)]
    found = read_corpus([table(pairs, header="text,answer,label")], LabeledDataConfig())
    assert found.notes[:1] == [
        "pairs of texts: text from column 'text', second text from column 'answer', label from column 'label'"
    ]
    dev = table(["x,a", "y,b"], "dev.csv", "review,label")
    two = read_corpus([table(numbered("ab")), table(numbered("ab"), "more.csv")], LabeledDataConfig(dev=dev))
    assert [note.partition(", ")[0] for note in two.notes[:2]] == [
        "single texts: text from column 'text'",
        "single texts: text from column 'review'",
    ]


def test_a_dev_file_is_found_again_from_another_folder(table, tmp_path, monkeypatch):
    training, _ = table(numbered("ab")), table(["x,a", "y,b"], "dev.csv")
    monkeypatch.chdir(tmp_path)
    written = LabeledDataConfig(dev="dev.csv").model_dump(mode="json")
    assert written["dev"] == str(tmp_path.resolve() / "dev.csv")
    monkeypatch.chdir("/")
    assert len(read_corpus([training], LabeledDataConfig.model_validate(written)).validation["validation"]) == 2


def test_a_class_that_is_held_out_alone_is_told_and_no_error(table):
    found = read_corpus(
        [table([*numbered(["bad", "good"]), *(f"odd {n},rare {n}" for n in range(30))])], LabeledDataConfig()
    )
    learned = {row.label for row in found.training}
    without = [label for label in found.labels if label not in learned]
    assert len(found.labels) == 32
    assert without
    assert any(note.startswith(f"nothing to train on for {without[0]}") for note in found.notes)


def test_one_class_alone_held_out_is_told(table):
    rows, one = table(numbered(["bad", "good"])), table(["x,good", "y,good"], "dev.csv")
    told = read_corpus([rows], LabeledDataConfig(dev=one)).notes[-1]
    assert told == f"{one} has the label 'good' only (2 rows): its scores say little; give it rows of other labels"
    told = read_corpus([table([*numbered(["good"]), "z,bad"], "most.csv")], LabeledDataConfig()).notes[-1]
    assert told.startswith("the held-out part has the label 'good' only")
    assert told.endswith("give more rows, a larger data.validation, or data.dev=FILE to evaluate on")
    assert not any("say little" in note for note in read_corpus([rows], LabeledDataConfig()).notes)


def test_what_is_missing_is_named(table):
    with pytest.raises(DataError, match="no column for the label among text, mood"):
        read_corpus([table(["a,b"], header="text,mood")], LabeledDataConfig())
    with pytest.raises(DataError, match="no labeled text; it has no rows"):
        read_corpus([table([])], LabeledDataConfig())
    with pytest.raises(DataError, match=r"2 rows to train on and 0 held out: too few.*data.dev=FILE"):
        read_corpus([table(["a,x", "b,y"])], LabeledDataConfig(validation=0.001))


@pytest.mark.parametrize("name", [name for name, task in GLUE.items() if task.training])
def test_glue_has_its_own_labels_parts_and_metrics(tmp_path, name):
    task = GLUE[name]
    found = read_glue_corpus(write_glue(tmp_path / task.name, name), GlueDataConfig())
    assert (found.labels, found.metrics) == (task.labels or (), task.metrics)
    assert list(found.validation) == list(task.validation)
    assert len(found.training) == 40
    undecided = ["left out: 2 with the label '-', without agreement between annotators"]
    assert found.notes == [task.name, *(undecided if name == "mnli" else [])]


def test_what_has_nothing_to_train_on_is_for_measuring(tmp_path):
    with pytest.raises(DataError, match=r"AX has nothing to train on; train on MNLI, then: regard evaluate MODEL"):
        read_glue_corpus(write_glue(tmp_path / "AX", "ax"), GlueDataConfig())
