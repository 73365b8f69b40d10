"""A look at data: balance, lengths, scripts, duplicates, and what to mind; the same facts by `regard data`."""

import json

import pytest

from regard.data import look
from regard.data.describe import describe_data
from regard.data.readers.columns import Columns
from regard.errors import DataError


def test_lengths_and_scripts():
    assert look.lengths(["a b", "a", "a b c d"]) == {"shortest": 1, "median": 2, "95 %": 2, "longest": 4}
    assert look.scripts(["cat", "Кот", "猫 3!"]) == {"Latin": "42.9%", "Cyrillic": "42.9%", "Han": "14.3%"}


def test_a_rare_class_is_named_with_the_setting_that_helps():
    (said,) = look.warn_of_classes(["yes"] * 97 + ["no"] * 3, ["yes", "no"])
    assert said == "rare: no (3 of 100); task.class_weights=true makes each class count as much"
    (said,) = look.warn_of_classes(["yes"] * 50 + ["no"] * 50, ["yes"])
    assert said.startswith("validation has no no")
    assert look.warn_of_classes(["yes"] * 50 + ["no"] * 50, ["yes", "no"]) == []


def test_duplicates_whatever_their_case_and_spacing():
    assert look.count_duplicates(["A  cat", "a cat", "a dog", "A CAT "]) == 2
    assert look.warn_of_straddling(["a cat", "b"], ["A cat", "c", "a cat"])[0].startswith("2 of 3 examples")
    assert look.warn_of_straddling(["a"], ["b"]) == []


@pytest.mark.parametrize(
    ("name", "text", "kind", "count"),
    [
        ("r.csv", "text,label\ngood,1\nbad,0\n", "labeled texts", ("rows", 2)),
        ("r.tsv", "sentence\tlabel\ngood\t1\n", "labeled texts", ("rows", 1)),
        ("p.tsv", "source\ttarget\nGo.\tVe.\n", "sentence pairs", ("pairs", 1)),
        ("p.jsonl", '{"source": "a", "target": "b"}\n', "sentence pairs", ("pairs", 1)),
        ("t.jsonl", '{"text": "a"}\n{"text": "b"}\n', "text", ("documents", 2)),
        ("l.jsonl", '{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n', "labeled texts", ("rows", 2)),
        ("n.conll", "Ann B-PER\nsings O\n\nBob B-PER\n", "tagged sentences", ("sentences", 2)),
        ("book.txt", "one\ntwo words\n", "text", ("characters", 14)),
    ],
)
def test_each_kind_of_file_is_known(tmp_path, name, text, kind, count):
    (tmp_path / name).write_text(text)
    facts = describe_data([tmp_path / name])
    assert facts["kind"].startswith(f"{kind}:")
    assert facts[count[0]] == count[1]
    json.dumps(facts)


def test_two_files_are_pairs_and_columns_can_be_named(tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.es").write_text("uno\ndos\n")
    assert describe_data([tmp_path / "a.en", tmp_path / "a.es"])["pairs"] == 2
    (tmp_path / "s.csv").write_text("body,stars\ngood,5\nbad,1\ngood,5\n")
    facts = describe_data([tmp_path / "s.csv"], Columns(text="body", label="stars"))
    assert facts["classes"] == {"5": "2 (66.7%)", "1": "1 (33.3%)"}
    assert facts["duplicates"] == 1


def test_a_folder_of_text_files_is_data(tmp_path, here):
    for name in ("b.txt", "a.md", "notes.pdf", ".hidden.txt"):
        (tmp_path / name).write_text(f"the text of {name}\n")
    assert describe_data([tmp_path])["documents"] == 2
    done = here("data", tmp_path)
    assert done.returncode == 0
    assert "kind                  text: regard train gpt, or bert" in done.stdout
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"the folder has no .txt or .md or .text file"):
        describe_data([tmp_path / "empty"])


def test_what_would_be_left_out_is_said(tmp_path, here):
    (tmp_path / "p.tsv").write_text("Go.\tVe.\n" * 3 + "no tab\n")
    done = here("data", tmp_path / "p.tsv")
    assert "note: bad lines left out: 1 (wrong columns 1); the first:" in done.stdout
    assert here("data", tmp_path / "p.tsv", "data.field=x").returncode == 2
