"""Sweeps: every combination of settings, resumed where it stopped, one table and one picture."""

import json

import pytest

from regard import recipes
from regard.errors import ConfigError
from regard.experiments.sweep import plan, table
from regard.tasks.recipe import TrainingInputs

SHORT = ["training.steps=6", "training.evaluate_every=3", "training.checkpoint_every=3", "model.vocab_size=300"]


@pytest.fixture
def points(tmp_path):
    def make(*grid, seeds=None, assignments=()):
        return plan(recipes.find("gpt"), TrainingInputs(), assignments, grid, seeds, tmp_path / "sweep")

    return make


def test_each_combination_has_a_folder_of_its_own(points, tmp_path):
    found = points("training.learning_rate=1e-3,3e-3", "model.layers=1,2", seeds=2, assignments=["training.steps=9"])
    names = [point.name for point in found]
    assert names == [
        f"training.learning_rate={rate}, model.layers={layers}" for rate in ("1e-3", "3e-3") for layers in (1, 2)
    ]
    last = found[-1].runs[-1]
    assert last.folder == tmp_path / "sweep" / "training.learning_rate=3e-3,model.layers=2" / "seed-2"
    assert last.assignments == [
        "training.steps=9",
        "training.learning_rate=3e-3",
        "model.layers=2",
        "training.seed=2",
    ]
    assert len({run.folder for point in found for run in point.runs}) == 8


@pytest.mark.parametrize(
    ("grid", "seeds", "assignments", "message"),
    [
        (["training.learning_rate=1e-3,-1"], None, [], "training.learning_rate: got '-1', wanted greater than 0"),
        (["training.learning_rat=1"], None, [], "unknown key training.learning_rat; did you mean training.learning_ra"),
        (["model.width=30,32", "model.heads=4"], None, [], "width=30 does not divide into model.heads=4"),
        (["training.steps"], None, [], "--grid training.steps: wanted key=value,value"),
        (["training.steps=1,"], None, [], "--grid training.steps=1,: wanted key=value,value"),
        (["training.steps=1,1"], None, [], "a value is there twice"),
        (["training.steps=1", "training.steps=2"], None, [], "training.steps is given twice"),
        (["training.steps=1,2"], None, ["training.steps=3"], "training.steps is given twice"),
        (["training.seed=1,2"], 2, [], "leave training.seed out"),
        (["data.tokenizer=a/b,c"], None, [], "'a/b' cannot be part of a folder's name"),
    ],
)
def test_a_wrong_grid_is_told_before_anything_is_trained(points, tmp_path, grid, seeds, assignments, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        points(*grid, seeds=seeds, assignments=assignments)
    assert not (tmp_path / "sweep").exists()


def test_a_table_has_mean_and_deviation():
    rows = [
        {"settings": {"model.layers": "1"}, "scores": {"tokens": 3, "loss": 2.0, "deviation": {"loss": 0.5}}},
        {"settings": {"model.layers": "2"}, "scores": {"tokens": 3, "loss": 1.25}},
    ]
    assert table(rows) == [["model.layers", "loss"], ["1", "2.0000 ± 0.5000"], ["2", "1.2500"]]


def test_a_sweep_is_trained_resumed_and_shown(here, tmp_path, story, tiny_text):
    arguments = ["train", "gpt", story, "--grid", "training.learning_rate=1e-3,1e-2", "--seeds", 2]
    arguments += ["-o", tmp_path / "sweep", *tiny_text, *SHORT]
    done = here(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [row["settings"] for row in result["grid"]] == [
        {"training.learning_rate": rate} for rate in ("1e-3", "1e-2")
    ]
    assert all(row["scores"]["runs"] == 2 and row["scores"]["deviation"]["loss"] > 0 for row in result["grid"])
    losses = [row["scores"]["loss"] for row in result["grid"]]
    assert losses[1] < losses[0], "six steps of 1e-3 are hardly a start"
    assert (tmp_path / "sweep" / "curves.png").read_bytes().startswith(b"\x89PNG")
    last = tmp_path / "sweep" / "training.learning_rate=1e-2" / "seed-2"
    weights = (last / "model.safetensors").read_bytes()
    # The last run was lost on the way: it alone is trained again.
    (last / "MANIFEST.json").unlink()
    again = here(*arguments)
    assert again.stderr.count("is trained already") == 3
    assert (last / "model.safetensors").read_bytes() == weights
    lines = again.stdout.splitlines()
    assert lines[0].split()[:2] == ["training.learning_rate", "loss"]
    deviation = result["grid"][0]["scores"]["deviation"]["loss"]
    assert lines[1].split()[:4] == ["1e-3", f"{losses[0]:.4f}", "±", f"{deviation:.4f}"]
    assert "seed-2" in again.stderr
    done = here("train", "gpt", story, "-o", last, "--grid", "training.weight_decay=0,0.1", *tiny_text, *SHORT)
    assert "is the folder of one run; give another -o for several" in done.stderr
