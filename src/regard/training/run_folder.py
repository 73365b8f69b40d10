"""The folder of a run: its checkpoints, the newest good one, and a lock against a second run in the same place.

runs/x/checkpoints/step-500/     a model folder with optimizer.safetensors and training.json
runs/x/                          at the end, a model folder itself
"""

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.checkpoint import WEIGHTS, encode_tensors, read_tensors
from regard.data.batches import Position
from regard.errors import FolderError, TrainingError
from regard.files import Files, encode_json, read_json, remove_folder, remove_remains, verify, write_folder

OPTIMIZER = "optimizer.safetensors"
STATE = "training.json"


@dataclass(frozen=True)
class Progress:
    """Where a run stands: all that decides how it goes on, but for weights and optimizer."""

    step: int = 0
    position: Position = Position(0, 0)  # noqa: RUF009 - frozen; the next batch
    seconds: float = 0.0  # spent in the loop, over all sittings
    tokens: int = 0  # real target tokens seen
    skipped_in_a_row: int = 0
    best_step: int | None = None
    best_loss: float | None = None
    worse_in_a_row: int = 0  # evaluations since the best one

    def evaluated(self, loss: float) -> "Progress":
        """After an evaluation: a new best, or one more that was no better."""
        if self.best_loss is None or loss < self.best_loss:
            return replace(self, best_step=self.step, best_loss=loss, worse_in_a_row=0)
        return replace(self, worse_in_a_row=self.worse_in_a_row + 1)


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
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise FolderError(
                f"cannot write to {self.path}: {error.strerror}; choose another folder with -o"
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise TrainingError(
                    f"another run is training in {self.path}; wait for it or choose another -o"
                ) from None
            remove_remains(self.path)
            remove_remains(self.checkpoints)
            yield

    def save(self, model: Files, optimizer: dict[str, Tensor], progress: Progress, *, keep: int) -> Path:
        """Save a checkpoint, then let go of old ones: the newest `keep` stay, and the best."""
        folder = self.checkpoints / f"step-{progress.step}"
        write_folder(
            folder,
            {**model, OPTIMIZER: encode_tensors(optimizer), STATE: encode_json(asdict(progress))},
        )
        for old in self.folders()[:-keep]:
            if _step_of(old) != progress.best_step:
                remove_folder(old)
        return folder

    def folders(self) -> list[Path]:
        """All checkpoints, the oldest first."""
        return sorted((path for path in self.checkpoints.glob("step-*") if _step_of(path) >= 0), key=_step_of)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest good checkpoint, and a line about each damaged one that was passed over."""
        notes: list[str] = []
        for folder in reversed(self.folders()):
            try:
                return self.read(folder), notes
            except FolderError as error:
                notes.append(f"passed over {folder}: {error}")
        return None, notes

    def read(self, folder: Path) -> Checkpoint:
        """Verify and read a checkpoint."""
        verify(folder)
        return Checkpoint(
            folder,
            _progress(read_json(folder / STATE), folder / STATE),
            read_tensors(folder / WEIGHTS),
            read_tensors(folder / OPTIMIZER),
        )


def _step_of(folder: Path) -> int:
    match = re.fullmatch(r"step-(\d+)", folder.name)
    return int(match[1]) if match else -1


def _progress(saved: dict[str, Any], where: Path) -> Progress:
    try:
        return Progress(**saved | {"position": Position(**saved["position"])})
    except (KeyError, TypeError) as error:
        raise FolderError(f"{where} is not the state of a run of this version: {error}") from error
