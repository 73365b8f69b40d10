"""The folder of a run: its checkpoints, the newest good one, and a lock against a second run in the same place.

runs/x/checkpoints/step-500/     a model folder with optimizer.safetensors and training.json
runs/x/                          at the end, a model folder itself
"""

import fcntl
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor

from regard import renamed
from regard.checkpoint import (
    CONFIG,
    FORMAT,
    SETTINGS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
    encode_tensors,
    read_config,
    read_tensors,
)
from regard.data.batches import DataPosition
from regard.errors import FolderError, TrainingError
from regard.files import MANIFEST, Files, encode_json, read_json, remove_folder, remove_leftovers, verify, write_folder
from regard.training.log import BOARD, METRICS

OPTIMIZER = "optimizer.safetensors"
STATE = "training.json"
LOCK = ".lock"
ATTEMPTS = 10  # to lock a folder that others take back
OWN = ("checkpoints", SETTINGS, LOCK)  # one of these in a folder says that it is a run's


@dataclass(frozen=True)
class Progress:
    """Where a run stands: all that decides how it goes on, but for weights and optimizer."""

    step: int = 0
    position: DataPosition = DataPosition(0, 0)  # noqa: RUF009 - frozen; the next batch
    seconds: float = 0.0  # spent in the loop, over all sittings
    tokens: int = 0  # real target tokens seen
    skipped_in_a_row: int = 0
    best_step: int | None = None
    best_loss: float | None = None
    best_validation: dict[str, float] = field(default_factory=dict)  # the evaluation at that step
    worse_in_a_row: int = 0  # evaluations since the best one
    validation: dict[str, float] = field(default_factory=dict)  # the newest evaluation
    epoch_steps: float | None = None  # of one pass over the data, where the run counts passes

    def evaluated(self, validation: dict[str, float]) -> "Progress":
        """After an evaluation: a new best, or one more that was no better."""
        loss = validation["loss"]
        if math.isfinite(loss) and (self.best_loss is None or loss < self.best_loss):
            best = replace(self, best_step=self.step, best_loss=loss, best_validation=validation)
            return replace(best, worse_in_a_row=0, validation=validation)
        return replace(self, worse_in_a_row=self.worse_in_a_row + 1, validation=validation)


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint, read."""

    folder: Path
    progress: Progress
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]


class RunFolder:
    """The checkpoints of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else trains here meanwhile; the lock goes with the process, however it ends."""
        if self.path.is_dir() and any(self.path.iterdir()) and not any((self.path / own).exists() for own in OWN):
            raise FolderError(f"{self.path} is not empty and holds no run; choose another folder with -o")
        with self._lock():
            remove_leftovers(self.checkpoints)
            yield

    def _lock(self) -> TextIO:
        """The open file with the lock; opened again where a run that took back its own has removed it meanwhile."""
        for _ in range(ATTEMPTS):
            lock = self._open_lock()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                break
            if _stands_at(lock, self.path / LOCK):
                return lock
            lock.close()
        raise TrainingError(f"another run is training in {self.path}; wait for it or choose another -o")

    def _open_lock(self) -> TextIO:
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            return (self.path / LOCK).open("w")
        except OSError as error:
            raise FolderError(
                f"cannot write to {self.path}: {error.strerror}; choose another folder with -o"
            ) from error

    def is_begun(self) -> bool:
        """There is a checkpoint or a finished model."""
        return bool(self.folders()) or (self.path / MANIFEST).exists()

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """A run that had not begun and breaks off before a checkpoint or a line of metrics leaves nothing."""
        begun = self.is_begun()
        try:
            yield
        except BaseException:
            if not begun and not self.is_begun() and not _has_content(self.path / METRICS):
                self.take_back()
            raise

    def take_back(self) -> None:
        """Remove what a run writes before its first checkpoint; the folder too, unless something else is in it."""
        for name in (SETTINGS, TOKENIZER, TOKENIZER_CONFIG, METRICS):
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.path / BOARD, ignore_errors=True)
        with suppress(OSError):  # not empty
            self.checkpoints.rmdir()
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def save(self, model: Files, optimizer: dict[str, Tensor], progress: Progress, *, keep: int) -> Path:
        """Save a checkpoint, then let go of old ones: the newest `keep` stay, and the best.

        From the first on, a model that an earlier sitting finished here no longer passes for the run's end.
        """
        (self.path / MANIFEST).unlink(missing_ok=True)
        folder = self.checkpoints / f"step-{progress.step}"
        write_folder(
            folder,
            {**model, OPTIMIZER: encode_tensors(optimizer), STATE: encode_json(asdict(progress))},
        )
        for old in self.folders()[:-keep]:
            if step_of(old) != progress.best_step:
                remove_folder(old)
        return folder

    def folders(self) -> list[Path]:
        """All checkpoints, the oldest first."""
        return sorted((path for path in self.checkpoints.glob("step-*") if step_of(path) >= 0), key=step_of)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest good checkpoint, and a line about each damaged one that was passed over."""
        notes: list[str] = []
        for folder in reversed(self.folders()):
            try:
                return self.read(folder), notes
            except FolderError as error:
                notes.append(f"passed over {folder}: {error}")
                # Out of the way: it must not count as one of the newest.
                aside = folder.with_name(f"damaged-{folder.name}")
                remove_folder(aside)
                folder.rename(aside)
        return None, notes

    def newest_progress(self) -> Progress | None:
        """Where the newest checkpoint stands; None without one."""
        folders = self.folders()
        return _progress(read_json(folders[-1] / STATE), folders[-1] / STATE) if folders else None

    def read(self, folder: Path) -> Checkpoint:
        """Verify and read a checkpoint."""
        verify(folder)
        config = read_config(folder / CONFIG) if (folder / CONFIG).is_file() else {"format": FORMAT}
        weights, optimizer = read_tensors(folder / WEIGHTS), read_tensors(folder / OPTIMIZER)
        if config["format"] == 1:
            weights, optimizer = (renamed.weights(str(config["kind"]), part) for part in (weights, optimizer))
        return Checkpoint(folder, _progress(read_json(folder / STATE), folder / STATE), weights, optimizer)


def _stands_at(file: TextIO, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def step_of(folder: Path) -> int:
    match = re.fullmatch(r"step-(\d+)", folder.name)
    return int(match[1]) if match else -1


def _progress(saved: dict[str, Any], where: Path) -> Progress:
    saved = {renamed.PROGRESS.get(name, name): value for name, value in saved.items()}
    try:
        return Progress(**saved | {"position": DataPosition(**saved["position"])})
    except (KeyError, TypeError) as error:
        raise FolderError(f"{where} is not the state of a run of this version: {error}") from error
