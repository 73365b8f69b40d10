"""What `regard run` runs on: texts, lines and tables; and file names in place of texts, which it refuses."""

import pytest

from regard.cli.inputs.texts import check_are_texts, read_inputs, read_texts
from regard.errors import InputError


def test_the_lines_of_a_file_are_the_inputs(tmp_path):
    (tmp_path / "reviews.txt").write_text("one\n\ntwo words\n", encoding="utf-8")
    assert read_inputs(None, tmp_path / "reviews.txt") == (["one", "", "two words"], "lines")


def test_of_a_table_the_texts_are(tmp_path):
    (tmp_path / "reviews.csv").write_text('id,text,label\n1,"good, really",pos\n2,bad,neg\n', encoding="utf-8")
    assert read_texts(tmp_path / "reviews.csv") == ["good, really", "bad"]
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\na\tb\n", encoding="utf-8")
    assert read_texts(tmp_path / "pairs.tsv") == ["a\tb"]


def test_two_inputs_are_an_error(tmp_path):
    with pytest.raises(InputError, match=r"--file .* and 'a text' both say what to run on"):
        read_inputs(["a text"], tmp_path / "x.txt")


def test_a_file_in_place_of_a_text_is_an_error_that_says_how_to_give_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("file.csv", "photo.png"):
        (tmp_path / name).write_text("text\nhello\n")
    with pytest.raises(
        InputError, match=r"file.csv is a file; .*: regard run sent --file file.csv; or .* - < file.csv"
    ):
        check_are_texts(["fine", "file.csv"], "sent")
    with pytest.raises(InputError, match=r"photo.png is an image, and runs/demo takes texts"):
        check_are_texts(["photo.png"], "runs/demo")
    with pytest.raises(InputError, match=r"gone.jpg is an image"):
        check_are_texts(["gone.jpg"], "runs/demo")
    check_are_texts(["a text", "end.", "look at photo.png", "file", "x" * 10_000], "runs/demo")
