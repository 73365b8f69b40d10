"""The line at the end of a training run: what it says to try works as it is printed."""

import shlex
from pathlib import Path

import pytest
from PIL import Image

from regard import recipes
from regard.cli.inputs.examples import command_to_try
from regard.errors import FolderError
from regard.files import check_writable
from regard.tasks.recipe import TrainingInputs


def test_quoted_as_a_shell_takes_it(tmp_path):
    folder = tmp_path / "my runs"
    folder.mkdir()
    words = shlex.split(command_to_try(recipes.find("gpt"), TrainingInputs(), folder, trust=False))
    assert words == ["regard", "run", str(folder), "Once upon a time"]


@pytest.mark.parametrize("name", ["captioner", "vqa", "statements", "grounding", "retrieval", "vilbert"])
def test_a_model_of_images_gets_one_that_exists(tmp_path, name):
    words = shlex.split(command_to_try(recipes.find(name), TrainingInputs(), tmp_path, trust=False))
    with Image.open(words[3]) as picture:
        assert picture.size[0] > 10
    assert len(words) == (4 if name == "captioner" else 5)
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "photos/a b.png")
    own = command_to_try(recipes.find(name), TrainingInputs([tmp_path / "photos"]), tmp_path, trust=False)
    assert shlex.split(own)[3] == str(tmp_path / "photos/a b.png")


def test_the_line_of_a_trained_captioner_works(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny = ["model.cell_size=16", "model.width=16", "model.heads=2", "model.feed_forward=16"]
    tiny += ["training.max_tokens=400", "training.warmup=1", "training.steps=1", "training.evaluate_examples=1"]
    tiny += ["data.validation=2"]
    done = here("train", "captioner", "-o", "runs/c", *tiny)
    assert done.returncode == 0, done.stderr
    command = done.stdout.strip().splitlines()[-1].partition("Try: ")[2]
    assert here(*shlex.split(command)[1:]).returncode == 0


def test_an_output_that_cannot_be_written_is_found_before_the_work(here, tmp_path):
    (tmp_path / "file").write_text("x")
    done = here("run", "nowhere", "a text", "-o", tmp_path / "file/x.png")
    assert "cannot be written:" in done.stderr  # before the model is looked for
    with pytest.raises(FolderError, match="is a folder; wanted the name of a file"):
        check_writable(tmp_path)
    check_writable(tmp_path / "new/folder/x.png")
    check_writable(Path("x.png"))
