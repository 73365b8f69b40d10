"""Files that appear whole or not at all, and that can be checked later: digests, fsync, rename."""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import DataError

LAYOUT = 2  # goes up when folders are written in another way; cache entries of the old way are then not found


class TakenError(DataError):
    """The folder to be made is there: it was before, or another process was faster."""


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to write into; when all went well it takes the name, else it is removed."""
    if folder.exists():
        raise TakenError(f"{folder}: is already there; remove it or choose another")
    unfinished = hidden_sibling(folder)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _sync_folder(unfinished)
        try:
            unfinished.rename(folder)
        except OSError as error:
            if folder.exists():
                raise TakenError(f"{folder}: was made by another process") from error
            raise
        _sync_folder(folder.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def hidden_sibling(folder: Path) -> Path:
    """A name beside the folder that nobody else uses."""
    return folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")


class DigestedFile:
    """A file for arrays whose digest is made while it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._digest = hashlib.blake2b(digest_size=32)

    def write(self, array: np.ndarray) -> None:
        raw = array.tobytes()
        self._file.write(raw)
        self._digest.update(raw)

    def finish(self) -> dict[str, Any]:
        """Bring it to the disk; its size and digest, for `verify`."""
        size = self._file.tell()
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"bytes": size, "blake2b": self._digest.hexdigest()}

    def close(self) -> None:
        self._file.close()


def verify(path: Path, fact: dict[str, Any]) -> None:
    """DataError unless the file is as it was when `finish` returned these facts."""
    if not path.is_file():
        raise DataError(f"{path}: is missing; make the folder again")
    if (size := path.stat().st_size) != fact["bytes"]:
        raise DataError(f"{path}: got {size:,} bytes, wanted {fact['bytes']:,}; make the folder again")
    if digest(path).hexdigest() != fact["blake2b"]:
        raise DataError(f"{path}: is not as it was written (its digest differs); make the folder again")


def write_index(folder: Path, what: str, index: dict[str, Any]) -> None:
    """Write the index.json of a folder of `what`; `files` has for each file what `finish` returned."""
    with (folder / "index.json").open("w", encoding="utf-8") as file:
        json.dump({"layout": LAYOUT, "what": what, **index}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def read_index(folder: Path, what: str, names: Callable[[dict[str, Any]], set[str]]) -> dict[str, Any]:
    """The index.json of a folder of `what`, every file held against it; `names` says which files it must list.

    DataError: a file that is missing or not as it was written.
    """
    path = folder / "index.json"
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = index["layout"] == LAYOUT and index["what"] == what and np.dtype(index["dtype"])
        reason = "" if known and index["files"].keys() == names(index) else "not the index of this version"
    except FileNotFoundError:
        reason = "is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        reason = " ".join(str(error).split())
    if reason:
        raise DataError(f"{path}: cannot be read as the index of {what} ({reason}); make the folder again")
    for name, fact in index["files"].items():
        verify(folder / name, fact)
    return index


def mapped(path: Path, dtype: np.dtype) -> np.ndarray:
    """The numbers of a file, mapped into memory."""
    if path.stat().st_size == 0:  # nothing can be mapped of an empty file
        return np.empty(0, dtype)
    # A plain array over the map: slices of np.memmap itself are several times slower.
    return np.asarray(np.memmap(path, dtype, mode="r"))


def digest(path: Path) -> "hashlib._Hash":
    """The blake2b of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
