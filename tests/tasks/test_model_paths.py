"""A path that is no model is told what it is."""

import json

import pytest

from regard.errors import FolderError
from regard.files import MANIFEST
from regard.tasks.model_paths import find_model, newest_checkpoint


def said(path):
    with pytest.raises(FolderError) as caught:
        find_model(path)
    return str(caught.value)


def test_a_run_that_has_not_finished_offers_its_newest_checkpoint(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    assert said(run).endswith("the same `regard train` resumes it, it has no checkpoint yet")
    for step in (500, 1000, 1500):
        (run / f"checkpoints/step-{step}").mkdir()
    for step in (500, 1000):  # the newest is being written
        (run / f"checkpoints/step-{step}" / MANIFEST).write_text("{}")
    assert newest_checkpoint(run) == run / "checkpoints/step-1000"
    assert "is a run that has not finished" in said(run)
    assert said(run).endswith(f"or take its newest checkpoint: {run / 'checkpoints/step-1000'}")
    assert find_model(run / "checkpoints/step-1000") == run / "checkpoints/step-1000"


def test_a_config_without_a_model_type_says_which_to_add(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["BertForMaskedLM"], "hidden_size": 32}))
    assert said(tmp_path).endswith('its architectures say BertForMaskedLM: add "model_type": "bert"')
    config.write_text(json.dumps({"hidden_size": 32}))
    assert "has no model_type and no architectures, so it does not say what model this is" in said(tmp_path)
    assert "bert" in said(tmp_path)


def test_a_folder_of_something_else_and_a_missing_one(tmp_path):
    assert "has no config.json, so it is no model" in said(tmp_path)
    assert "there is no folder or file" in said(tmp_path / "gone")
