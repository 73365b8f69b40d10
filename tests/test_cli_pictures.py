"""Scenes at the command: what is drawn is what the world says."""

import json

import numpy as np
from PIL import Image

from regard.cli.measure import is_data
from regard.worlds.scene_captions import caption
from regard.worlds.scenes import Scenes


def test_scenes_are_drawn_with_their_captions_boxes_and_questions(here, tmp_path):
    done = here("scenes", tmp_path / "out", "--count", 3, "--seed", 5)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in (tmp_path / "out" / "captions.jsonl").read_text().splitlines()]
    boxes = json.loads((tmp_path / "out" / "boxes.json").read_text())
    asked = [json.loads(line) for line in (tmp_path / "out" / "questions.jsonl").read_text().splitlines()]
    world = Scenes(5, "heldout")
    for number in range(3):
        name, scene = f"scene-{number}.png", world[number]
        assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / name)), scene.pixels())
        assert told[number]["captions"][0] == " ".join(caption(scene).words)
        assert boxes[name] == [list(thing.box) for thing in scene.things]
    assert {one["image"] for one in asked} == set(boxes)


def test_what_is_there_is_not_drawn_over(here, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = here("scenes", tmp_path, "--count", 1)
    assert (done.returncode, "is there and not empty" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    done = here("scenes", tmp_path / "out", "--part", "moon")
    assert (done.returncode, "moon" in done.stderr) == (2, True)


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
