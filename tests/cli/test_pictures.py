"""Pictures at the command: scenes are drawn as the world says, and what is no picture is named, counted, no crash."""

import json

import numpy as np
import pytest
from PIL import Image

from regard.cli.evaluate import is_data
from regard.synthetic.scenes.captions import caption
from regard.synthetic.scenes.scene import Scenes
from tests.images.making import gradient, huge, saved

TINY = ["model.image_size=32", "model.cell_size=16", "model.width=16", "model.heads=2", "model.feed_forward=16"]
TINY += ["training.max_tokens=400", "training.warmup=1", "training.steps=1", "training.evaluate_examples=1"]
BAD = {
    "empty.png": (b"", "is empty, wanted a PNG or JPEG image"),
    "huge.png": (huge(), "is 50,000 × 50,000, at most 50,000,000 pixels wanted"),
    "text.png": (b"hello, this is a text", "is text, wanted a PNG or JPEG image"),
}


def test_scenes_are_drawn_with_their_captions_boxes_and_questions(here, tmp_path):
    done = here("scenes", tmp_path / "out", "--count", 3, "--seed", 5)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in (tmp_path / "out" / "captions.jsonl").read_text().splitlines()]
    boxes = json.loads((tmp_path / "out" / "boxes.json").read_text())
    asked = [json.loads(line) for line in (tmp_path / "out" / "questions.jsonl").read_text().splitlines()]
    world = Scenes(5, "validation")
    for number in range(3):
        name, scene = f"scene-{number}.png", world[number]
        assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / name)), scene.pixels())
        assert told[number]["captions"][0] == " ".join(caption(scene).words)
        assert boxes[name] == [list(thing.box) for thing in scene.things]
    assert {one["image"] for one in asked} == set(boxes)


def test_what_is_there_is_not_drawn_over(here, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = here("scenes", tmp_path, "--count", 1)
    assert (done.returncode, "exists and is not empty" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    done = here("scenes", tmp_path / "out", "--part", "moon")
    assert (done.returncode, "moon" in done.stderr) == (2, True)


# ------------------------------------------------ bad pictures


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """Nine pictures, one without a caption, three files that are none, and a caption of one that is not there."""
    folder = tmp_path_factory.mktemp("album")
    for number in range(9):
        (folder / f"good-{number}.png").write_bytes(saved(gradient(20 + number, 20)))
    for name, (content, _) in BAD.items():
        (folder / name).write_bytes(content)
    names = [path.name for path in sorted(folder.iterdir()) if path.name != "good-3.png"]
    (folder / "captions.tsv").write_text("".join(f"{name}\ta thing\n" for name in [*names, "gone.png"]))
    return folder


@pytest.fixture(scope="module")
def captioner(train_here, album):
    return train_here("captioner", *TINY, "data.on_error=skip", data=[album, album / "captions.tsv"])


def one_line(done, *parts):
    """The user's mistake: exit 2, nothing on stdout, one last line that says all of these."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("error: ")
    assert all(part in line for part in parts), line


@pytest.mark.parametrize("name", BAD)
def test_one_picture_that_is_none_is_one_line(here, captioner, album, tmp_path, name):
    one_line(here("run", captioner, album / name, "-o", tmp_path / "look.png"), str(album / name), BAD[name][1])
    assert not (tmp_path / "look.png").exists()
    one_line(here("run", captioner, album / "gone.png"), "there is no image", "gone.png")


def test_of_a_folder_the_bad_ones_are_named_and_counted(here, captioner, album):
    done = here("run", captioner, album, "--json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["image"] for line in done.stdout.splitlines()] == [
        str(album / f"good-{number}.png") for number in range(9)
    ]
    *named, counted = done.stderr.splitlines()
    assert counted == "3 of 12 images left out"
    for line, (name, (_, said)) in zip(named, BAD.items(), strict=True):
        assert line.startswith(f"left out: {album / name}: {said}")


def test_where_no_picture_can_be_read_nothing_is_run(here, captioner, album):
    one_line(here("run", captioner, *(album / name for name in BAD)), "none of 3 images can be read")


def test_training_names_and_counts_what_it_leaves_out(here, album, tmp_path):
    paths = (album, album / "captions.tsv")
    done = here("train", "captioner", *paths, "-o", tmp_path / "run", *TINY, "data.on_error=skip")
    assert done.returncode == 0, done.stderr
    assert "bad lines left out: 4 (bad image 3, missing image 1)" in done.stderr
    assert "left out: 1 images of" in done.stderr
    for said in ("gone.png in", *(f"{name}: bad image: {BAD[name][1]}" for name in BAD)):
        assert said in done.stderr
    scores = json.loads(here("evaluate", tmp_path / "run", *paths, "--json").stdout)
    assert scores["images"] == 8
    assert scores["bad_lines"][1].startswith("bad lines left out: 4 (bad image 3")


def test_training_stops_at_a_bad_picture_or_line_unless_told_otherwise(here, album, tmp_path):
    (tmp_path / "some.tsv").write_text("good-1.png\ta thing\nwithout a tab\n")
    done = here("train", "captioner", album, tmp_path / "some.tsv", "-o", tmp_path / "run", *TINY)
    one_line(done, "some.tsv:2: wrong columns", "data.on_error=skip")
    (tmp_path / "some.tsv").write_text("good-1.png\ta thing\ngone.png\ta thing\nlost.png\ta thing\n")
    done = here("train", "captioner", album, tmp_path / "some.tsv", "-o", tmp_path / "run", *TINY)
    one_line(done, "2 of its lines name images that are not in", "some.tsv:2: missing image: there is no gone.png")
    for name, (_, said) in BAD.items():
        rest = [line for line in (album / "captions.tsv").read_text().splitlines() if line.split("\t")[0] not in BAD]
        (tmp_path / "some.tsv").write_text("\n".join([*rest[:-1], f"{name}\ta thing", ""]))
        done = here("train", "captioner", album, tmp_path / "some.tsv", "-o", tmp_path / "run", *TINY)
        one_line(done, f"{album / name}: {said}", "data.on_error=skip")


def test_a_folder_of_pictures_is_data_and_a_model_is_none(tmp_path):
    """`regard evaluate MODEL photos/ captions.jsonl` scores one model, and not the photographs as another."""
    for name, files in {
        "photos": ["a.JPG"],
        "glue": ["dev.tsv"],
        "model": ["config.json", "card.png"],
        "run": [],
    }.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("")
    assert [name for name in ("photos", "glue", "model", "run") if is_data(tmp_path / name)] == ["photos", "glue"]


def test_a_picture_is_no_text_to_translate(here, trained, album):
    one_line(here("run", trained, album / "good-1.png"), "good-1.png is an image", "a model for images")
