"""Disks that fail while regard saves: no false success, our own error, and the newest good checkpoint stays usable."""

import hashlib
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from regard.checkpoint import WEIGHTS, model_files
from regard.errors import FolderError, RegardError
from regard.files import Files, verify, write_files
from regard.models import build, examples
from regard.training.run_folder import Progress, RunFolder
from tests.attack.disk import KINDS, SHORT, Disk
from tests.attack.harness import Outcome, Row, error_faults, in_child
from tests.attack.runs import RECIPES, Recipe, place

QUICK_SAVES = 40
TRAININGS, QUICK_TRAININGS = 60, 2
MODELS = ("gpt", "rnn", "captioner")
OLD, NEW = 0, 1  # what was there before the save, and what it saves


# ------------------------------------------------ saves


@dataclass(frozen=True)
class Save:
    """A save into a folder that has the checkpoints of these steps, and perhaps a finished model."""

    name: str
    steps: tuple[int, ...]
    step: int | None  # of the checkpoint to save; None: the finished model
    finished: bool = False


SAVES = (
    Save("the first checkpoint", (), 3),
    Save("the next checkpoint", (3, 6), 9),
    Save("the same step again", (3, 6), 6),
    Save("a checkpoint after the end of the run", (3, 6), 9, finished=True),
    Save("the finished model", (3, 6), None),
    Save("the finished model again", (3, 6), None, finished=True),
)


def saves(quick: bool) -> list[Outcome]:
    """Every operation of every save fails in every way."""
    return in_child(lambda: _saves(quick))


def _saves(quick: bool) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        befores = {(model, save): Path(name, f"{model}, {save.name}") for model in MODELS for save in SAVES}
        faults = [
            (model, save, kind, number, operation)
            for (model, save), before in befores.items()
            for number, operation in enumerate(_operations(model, save, before))
            for kind in KINDS
            if kind != SHORT or operation == "write"
        ]
        for model, save, kind, number, operation in random.Random(5).sample(faults, QUICK_SAVES) if quick else faults:
            path = Path(name, "run")
            shutil.copytree(befores[model, save], path)
            found, line = _judge(model, save, Disk(kind, number), path)
            shutil.rmtree(path)
            yield Outcome(f"{model}, {save.name}: {kind} at operation {number}, {operation}", found, line)


def _operations(model: str, save: Save, before: Path) -> list[str]:
    """Make the folder before the save; returns the operations of the save."""
    disk = Disk()
    _prepare(model, save, before)
    with tempfile.TemporaryDirectory(prefix="attack-") as name, disk.mounted():
        path = shutil.copytree(before, Path(name, "run"))
        disk.operations.clear()
        _save(model, save.step, path, NEW)
        return list(disk.operations)


def _judge(model: str, save: Save, disk: Disk, path: Path) -> tuple[list[str], str]:
    """Save on this disk; what is wrong afterwards, and regard's line."""
    line, found = "", []
    try:
        with disk.mounted():
            _save(model, save.step, path, NEW)
    except RegardError as error:
        line = str(error)
        if "\n" in line or not line.startswith("cannot "):
            found.append("an error that is not one line about what could not be done")
    except Exception as error:
        line = f"{type(error).__name__}: {error}"
        found.append("not an error of regard's")
    return [*found, *_state_faults(model, save, path, failed=bool(line))], line


def _state_faults(model: str, save: Save, path: Path, *, failed: bool) -> Iterator[str]:
    """What is wrong with the folder that the next start finds."""
    folder = RunFolder(path)
    with folder.locked():
        newest, notes = folder.newest()
    now = None if newest is None else (newest.progress.step, _digest(newest.folder))
    old = (save.steps[-1], _wanted(model, OLD)) if save.steps else None
    new = old if save.step is None else (save.step, _wanted(model, NEW))
    if now != new and not (failed and now == old):
        yield f"the newest checkpoint is {now}, wanted {new}{f' or {old}' if failed else ''}"
    yield from notes
    if left := [left.name for left in folder.checkpoints.glob(".*")]:
        yield f"left over: {', '.join(left)}"
    if save.step is None:
        yield from _finished_faults(model, path, failed=failed)


def _finished_faults(model: str, path: Path, *, failed: bool) -> Iterator[str]:
    """A finished model that verifies is whole, the old one or the new one; after a failure there may be none."""
    try:
        verify(path)
    except FolderError as error:
        if not failed:
            yield f"success, but {error}"
        return
    if _digest(path) != _wanted(model, NEW) and not (failed and _digest(path) == _wanted(model, OLD)):
        yield "the finished model has other weights"


def _prepare(model: str, save: Save, path: Path) -> None:
    """The folder before the save."""
    RunFolder(path).checkpoints.mkdir(parents=True)
    for step in save.steps:
        _save(model, step, path, OLD)
    if save.finished:
        _save(model, None, path, OLD)


def _save(model: str, step: int | None, path: Path, content: int) -> None:
    files = _files(model, content)
    if step is None:
        write_files(path, files)
    else:
        RunFolder(path).save(files, {"momentum": torch.zeros(4)}, Progress(step), keep=2)


@cache
def _files(kind: str, content: int) -> Files:
    """The files of a tiny model; another content has other weights."""
    torch.manual_seed(content)
    model = build(next(examples(kind)))
    return model_files(kind, model, {"name": "a task"}, {"tokenizer.json": b"{}"}, f"# {kind}\n")


def _wanted(kind: str, content: int) -> str:
    return hashlib.sha256(_files(kind, content)[WEIGHTS]).hexdigest()


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()


# ------------------------------------------------ training


def trainings(quick: bool) -> Iterator[Outcome]:
    """`regard train` on a disk that fails at a random operation, and then once more on a good one."""
    chance = random.Random(6)
    recipe = RECIPES[0]
    operations = _training_operations(recipe)
    for _ in range(QUICK_TRAININGS if quick else TRAININGS):
        number = chance.randrange(len(operations))
        kind = chance.choice(KINDS if operations[number] == "write" else KINDS[:-1])
        yield _train(recipe, kind, number, operations[number])


def _training_operations(recipe: Recipe) -> list[str]:
    """The operations of a whole run, written to a file, since the run is in a process of its own."""
    with place() as here:
        log = here.outside / "operations"
        log.touch()
        here.train(recipe, lambda: Disk(log=os.open(log, os.O_WRONLY)).mount())
        return log.read_text().split()


def _train(recipe: Recipe, kind: str, number: int, operation: str) -> Outcome:
    with place() as here:
        done = here.train(recipe, Disk(kind, number).mount)
        faults = [] if done.code == 0 else list(error_faults(done, notes=True))
        if "Traceback" in done.errors:
            faults.append("a traceback")
        faults += here.differences(recipe)
    return Outcome(f"{recipe.name}: {kind} at operation {number}, {operation}", faults, done.last_line)


ROWS: dict[str, Row] = {"faults in saves": saves, "faults in training": trainings}
