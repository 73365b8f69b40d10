"""A run killed at any moment and started again ends with the same weights, byte for byte."""

import hashlib
import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

import regard
from regard.errors import FolderError

TRANSLATOR = ["translator"]
SETTINGS = ["training.steps=60", "training.checkpoint_every=5", "training.seed=3"]


@pytest.fixture
def start(forks):
    """Starts a run in a process of its own."""

    def start(folder, settings, recipe=TRANSLATOR):
        return forks.start("train", *recipe, "-o", folder, *SETTINGS, *settings)

    return start


@pytest.fixture
def finish(start):
    """Trains to the end, and returns the digest of the weights."""

    def finish(folder, settings, recipe=TRANSLATOR):
        code, errors = start(folder, settings, recipe).wait()
        assert code == 0, errors
        return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()

    return finish


def steps_saved(folder):
    return [int(path.name.removeprefix("step-")) for path in (folder / "checkpoints").glob("step-*")]


def kill_when(process, ready):
    """Send SIGKILL once `ready()`; False if the run ended before."""
    while process.poll() is None and not ready():
        time.sleep(0.002)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    return process.wait()[0] == -signal.SIGKILL


@pytest.fixture
def killed(start):
    """Kills a run at each of these moments; begins again where it ended before one, on a machine that is busy."""

    def killed(folder, settings, recipe, *moments):
        for _ in range(20):
            if all(kill_when(start(folder, settings, recipe), lambda ready=ready: ready(folder)) for ready in moments):
                return folder
            shutil.rmtree(folder)
        raise AssertionError("20 runs ended before they were killed")

    return killed


def is_saving(folder):
    return list((folder / "checkpoints").glob(".new-*"))


def has_saved(step):
    return lambda folder: max(steps_saved(folder), default=0) >= step


def test_a_killed_and_resumed_run_equals_an_uninterrupted_one(tmp_path, tiny, finish, killed):
    wanted = finish(tmp_path / "whole", tiny)
    # Killed while a checkpoint is being written, and some steps after one.
    folder = killed(tmp_path / "killed", tiny, TRANSLATOR, is_saving, has_saved(20))
    assert not (folder / "model.safetensors").exists()
    assert finish(folder, tiny) == wanted
    assert not list(folder.rglob(".new-*"))


def test_a_killed_language_model_with_dropout_resumes_to_the_same_weights(tmp_path, tiny_text, story, finish, killed):
    settings = [*tiny_text, "model.vocab_size=300", "model.dropout=0.1", "training.activation_checkpointing=true"]
    recipe = ["gpt", str(story)]
    wanted = finish(tmp_path / "whole", settings, recipe)
    folder = killed(tmp_path / "killed", settings, recipe, has_saved(15))
    assert not (folder / "model.safetensors").exists()
    assert finish(folder, settings, recipe) == wanted


def test_a_killed_model_of_a_users_file_resumes_to_the_same_weights(tmp_path, story, finish, killed):
    """What `regard new model` writes."""
    mine = tmp_path / "mine.py"
    mine.write_text((Path(regard.__file__).parent / "templates" / "model.py").read_text(encoding="utf-8"))
    settings = ["model.width=32", "model.vocab_size=300", "model.context=32", "training.max_tokens=512"]
    recipe = [f"{mine}:recipe", str(story)]
    wanted = finish(tmp_path / "whole", settings, recipe)
    folder = killed(tmp_path / "killed", settings, recipe, has_saved(15))
    assert not (folder / "model.safetensors").exists()
    assert finish(folder, settings, recipe) == wanted


@pytest.mark.prove
def test_ten_kills_at_random_moments_equal_uninterrupted(tmp_path, start, finish):
    """The settings of the recipe itself, ten kills -9 at random moments of the whole run."""
    wanted = finish(tmp_path / "whole", [])
    folder, chance = tmp_path / "killed", random.Random(7)
    kills = 0
    while kills < 10:
        moment = time.monotonic() + chance.uniform(4, 14)
        process = start(folder, [])
        if kill_when(process, lambda moment=moment: time.monotonic() > moment):
            kills += 1
        elif (folder / "model.safetensors").exists():
            break
    assert finish(folder, []) == wanted


def test_a_run_does_not_resume_with_another_tokenizer_than_its_checkpoints(tmp_path, tiny_text, story, train_here):
    settings = [*tiny_text, "data.tokenizer=characters"]
    folder = train_here("gpt", *settings, "training.steps=2", data=[story], folder=tmp_path / "run")
    tokenizer = folder / "tokenizer.json"
    good = tokenizer.read_bytes()
    swapped = {b'"q"': b'"w"', b'"w"': b'"q"'}  # a valid tokenizer, with which every text has other ids
    tokenizer.write_bytes(re.sub(rb'"[qw]"', lambda found: swapped[found[0]], good))
    saved = folder / "checkpoints" / "step-2" / "tokenizer.json"
    with pytest.raises(FolderError, match=f"{tokenizer} differs from {saved}, .*; copy that file over it"):
        train_here("gpt", *settings, "training.steps=4", data=[story], folder=folder)
    tokenizer.write_bytes(good)
    train_here("gpt", *settings, "training.steps=4", data=[story], folder=folder)
