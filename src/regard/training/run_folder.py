"""The folder of a run: its checkpoints, the newest intact one, and a lock against a second run in the same folder.

runs/x/checkpoints/step-500/     a model folder with optimizer.safetensors and training.json
runs/x/                          at the end of the run, a model folder itself
"""

import math
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
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
from regard.files import (
    MANIFEST,
    Files,
    encode_json,
    os_errors_named,
    read_json,
    remove_folder,
    remove_leftovers,
    verify,
    write_folder,
)
from regard.training.locking import lock_file
from regard.training.log import METRICS, TENSORBOARD

OPTIMIZER = "optimizer.safetensors"
STATE = "training.json"
LOCK = ".lock"
LOCK_ATTEMPTS = 10  # each time another process has deleted the lock file meanwhile
RUN_FILES = ("checkpoints", SETTINGS, LOCK)  # a folder with one of these holds a run


@dataclass(frozen=True)
class Progress:
    """The state of a run, besides its weights and its optimizer: all that a resumed run depends on."""

    step: int = 0
    position: DataPosition = DataPosition(0, 0)  # noqa: RUF009 - frozen; where the next batch stands
    seconds: float = 0.0  # spent in the loop, over all sessions
    tokens: int = 0  # trained on so far, without padding
    skipped_in_a_row: int = 0
    best_step: int | None = None
    best_loss: float | None = None
    best_validation: dict[str, float] = field(default_factory=dict)  # the evaluation at that step
    evaluations_since_best: int = 0
    validation: dict[str, float] = field(default_factory=dict)  # the newest evaluation
    epoch_steps: float | None = None  # steps of one epoch; None: the run does not count epochs
    loss_scale: dict[str, float] = field(default_factory=dict)  # the state of the gradient scaler; empty: not float16

    def after_step(self, position: DataPosition, tokens: int, seconds: float, *, is_finite: bool) -> "Progress":
        """One step further; a step whose loss or gradient was not finite has been skipped."""
        return replace(
            self,
            step=self.step + 1,
            position=position,
            seconds=seconds,
            tokens=self.tokens + tokens,
            skipped_in_a_row=0 if is_finite else self.skipped_in_a_row + 1,
        )

    @property
    def best_evaluation(self) -> dict[str, float]:
        """The best evaluation so far; before the first a loss that every other is better than."""
        return self.best_validation or {"loss": math.inf if self.best_loss is None else self.best_loss}

    def after_evaluation(self, validation: dict[str, float], is_best: bool) -> "Progress":
        """With the newest evaluation, and whether it is the best so far."""
        if is_best:
            best = replace(self, best_step=self.step, best_loss=validation["loss"], best_validation=validation)
            return replace(best, evaluations_since_best=0, validation=validation)
        return replace(self, evaluations_since_best=self.evaluations_since_best + 1, validation=validation)


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint in memory."""

    folder: Path
    progress: Progress
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]


class RunFolder:
    """The checkpoints of one run. Of several processes only one may write there; it holds the lock."""

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self.path, self.writes = path, writes
        self.checkpoints = path / "checkpoints"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock; the operating system releases it when the process ends, however it ends."""
        if not self.writes:
            yield
            return
        if self.path.is_dir() and any(self.path.iterdir()) and not any((self.path / own).exists() for own in RUN_FILES):
            raise FolderError(f"{self.path} is not empty and holds no run; choose another folder with -o")
        with self._lock():
            remove_leftovers(self.checkpoints)
            yield

    def _lock(self) -> TextIO:
        """The open and locked lock file. Re-lock when the file was deleted while we waited."""
        for _ in range(LOCK_ATTEMPTS):
            lock = self._open_lock()
            try:
                lock_file(lock)
            except OSError:
                lock.close()
                break
            if _is_file_at(lock, self.path / LOCK):
                return lock
            lock.close()
        raise TrainingError(f"another run is training in {self.path}; wait for it or choose another folder with -o")

    def _open_lock(self) -> TextIO:
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            return (self.path / LOCK).open("w")
        except OSError as error:
            raise FolderError(
                f"cannot write to {self.path}: {error.strerror}; choose another folder with -o"
            ) from error

    def has_started(self) -> bool:
        """Whether there is a checkpoint or a finished model."""
        return bool(self.folders()) or (self.path / MANIFEST).exists()

    @contextmanager
    def removed_on_failure(self) -> Iterator[None]:
        """Remove a new run that fails, or is terminated, before its first checkpoint or line of metrics."""
        had_started = self.has_started()
        try:
            with _exit_when_terminated():
                yield
        except BaseException:
            if self.writes and not had_started and not self.has_started() and not _has_content(self.path / METRICS):
                self.remove_new_run()
            raise

    def remove_new_run(self) -> None:
        """Remove what a run writes before its first checkpoint, and the folder if nothing else is in it."""
        for name in (SETTINGS, TOKENIZER, TOKENIZER_CONFIG, METRICS):
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.path / TENSORBOARD, ignore_errors=True)
        with suppress(OSError):  # not empty
            self.checkpoints.rmdir()
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def save(self, model: Files, optimizer: dict[str, Tensor], progress: Progress, *, keep: int) -> Path:
        """Save a checkpoint, then delete all but the newest `keep` and the best.

        The manifest of a model that an earlier session finished here is deleted: it is no longer the end of the run.
        """
        with os_errors_named(f"remove {self.path / MANIFEST}"):
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
        """The newest intact checkpoint, and a note about each damaged one."""
        notes: list[str] = []
        for folder in reversed(self.folders()):
            try:
                return self.read(folder), notes
            except FolderError as error:
                notes.append(f"skipped {folder}: {error}")
                # Moved aside, so that it does not count as one of the newest.
                aside = folder.with_name(f"damaged-{folder.name}")
                remove_folder(aside)
                folder.rename(aside)
        return None, notes

    def check_tokenizer(self) -> None:
        """FolderError if the run's tokenizer is not the one of its newest intact checkpoint."""
        for folder in reversed(self.folders()):
            with suppress(FolderError):  # damaged: `newest` says so
                verify(folder)
                break
        else:
            return
        for name in (TOKENIZER, TOKENIZER_CONFIG):
            saved, ours = folder / name, self.path / name
            if saved.is_file() and not (ours.is_file() and ours.read_bytes() == saved.read_bytes()):
                raise FolderError(
                    f"{ours} differs from {saved}, with which the run was trained; copy that file over it"
                )

    def newest_progress(self) -> Progress | None:
        """The progress of the newest checkpoint; None if there is none."""
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


@contextmanager
def _exit_when_terminated() -> Iterator[None]:
    """Raise SystemExit at SIGTERM, which would else end the process at once and leave its files."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # Python allows handlers in the main thread only
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_file_at(file: TextIO, path: Path) -> bool:
    """Whether the path still names this open file."""
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
        raise FolderError(f"{where} is not the progress of a run of this version: {error}") from error
