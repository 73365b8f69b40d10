"""Folders of questions about pictures: the package's own, and every bad one."""

import importlib.util
import json
from pathlib import Path

import pytest
from PIL import Image

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.easy_vqa import ImageQuestion, read_easy_vqa
from regard.errors import DataError


@pytest.fixture(scope="module")
def package() -> Path:
    spec = importlib.util.find_spec("easy_vqa")
    assert spec is not None, "pip install --no-deps -r requirements-models.lock"
    return Path(spec.submodule_search_locations[0]) / "data"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two questions to learn from and one to be measured on."""
    for part, rows in {
        "train": [["what is it?", "circle", 0], ["is it red?", "no", 1]],
        "test": [["is it?", "yes", 0]],
    }.items():
        (tmp_path / part / "images").mkdir(parents=True)
        (tmp_path / part / "questions.json").write_text(json.dumps(rows))
        for number in range(2):
            Image.new("RGB", (8, 8), (number * 200, 0, 0)).save(tmp_path / part / "images" / f"{number}.png")
    (tmp_path / "answers.txt").write_text("circle\nyes\n\nno\n")
    return tmp_path


def read(folder: Path, on_error: str = "stop", report: BadRows | None = None):
    return read_easy_vqa(folder, on_error=on_error, report=report or BadRows())


def test_the_package_is_read_as_it_is(package):
    found = read(package)
    assert (len(found.training), len(found.validation), len(found.answers)) == (38_575, 9_673, 13)
    assert found.training[0].text == "what is the blue shape?"
    assert found.training[0].answer == "rectangle"
    assert found.training[0].image == package / "train" / "images" / "0.png"
    assert len({one.image for one in found.validation}) == 1000


def test_a_folder_is_its_questions_and_its_answers(folder):
    found = read(folder)
    assert found.answers == ("circle", "yes", "no")
    assert found.training[1] == ImageQuestion("is it red?", "no", folder / "train" / "images" / "1.png")
    assert [one.text for one in found.validation] == ["is it?"]


BAD = [
    (["what?", "circle"], "no question: got .*, wanted .question, answer, image number."),
    ({"question": "what?"}, "no question"),
    ([" ", "circle", 0], "no text"),
    ([5, "circle", 0], "no text"),
    (["what?", "oval", 0], "unknown answer: got 'oval'"),
    (["what?", ["circle"], 0], "unknown answer"),
    (["what?", "circle", 7], r"no image: there is no images/7.png"),
    (["what?", "circle", True], "no image"),
    (["what?", "circle", "../../test/images/0"], "no image"),
]


@pytest.mark.parametrize(("row", "said"), BAD, ids=str)
def test_a_bad_question_is_named_or_skipped(folder, row, said):
    file = folder / "train" / "questions.json"
    file.write_text(json.dumps([["what is it?", "circle", 0], row]))
    with pytest.raises(DataError, match=rf"questions.json:2: {said}.*data.on_error=skip") as error:
        read(folder)
    assert "\n" not in str(error.value)
    report = BadRows()
    assert len(read(folder, "skip", report).training) == 1
    assert report.count == 1


def test_folders_that_are_none_are_one_line(folder, tmp_path):
    file = folder / "train" / "questions.json"
    for content, said in {"[[": "is not JSON", "{}": "is dict, wanted a list", "[]": "no good question"}.items():
        file.write_text(content)
        with pytest.raises(DataError, match=f"questions.json: {said}"):
            read(folder)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read(folder)
    file.unlink()
    with pytest.raises(DataError, match="questions.json: no such file, wanted a folder with answers.txt"):
        read(folder)
    (folder / "answers.txt").write_text("\n")
    with pytest.raises(DataError, match="has no answers"):
        read(folder)
    with pytest.raises(DataError, match="none: no such folder"):
        read(tmp_path / "none")
