"""Atomic, verified files and folders.

A file is written to a temporary sibling, fsynced and renamed, and then its parent folder is fsynced; a folder likewise.
So a reader finds the old content or the new, never half of it, also after a power failure. Two kinds of folder can be
verified: a model folder against its MANIFEST.json, which lists the SHA-256 and size of every file and is written
last; and a cached dataset against the digests that `DigestedFile` computes while writing.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from regard.errors import DataError, FolderError

MANIFEST = "MANIFEST.json"
ASIDE = ".replaced-"  # begins the name of a folder while another takes its place
MAX_DEPTH = 100  # of JSON
NO_PLACE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS)  # more space on the disk would not help

Files = Mapping[str, bytes]
Manifest = dict[str, dict[str, Any]]


class FolderExistsError(DataError):
    """The folder to create exists: it did before, or another process was faster."""


# ------------------------------------------------ write files


@contextmanager
def os_errors_named(task: str) -> Iterator[None]:
    """Raise FolderError for an OSError, with the task that failed: an fsync's error alone names no file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        advice = "choose another folder" if error.errno in NO_PLACE else "free some space or choose another folder"
        raise FolderError(f"cannot {task}: {reason}; {advice}") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically, replacing an old one."""
    with os_errors_named(f"write {path}"):
        _write_file(path, data)


def _write_file(path: Path, data: bytes) -> None:
    with atomic_write(path) as file:
        file.write(data)


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error."""
    new = path.with_name(f".new-{path.name}")
    try:
        with new.open("wb") as file:
            yield file
            _fsync(file)
        new.rename(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _fsync_folder(path.parent)


class DigestedFile:
    """A file that computes its digest while it is written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._digest = hashlib.blake2b(digest_size=32)

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)

    def finish(self) -> dict[str, Any]:
        """Flush to disk. Returns size and digest, for `check_digest`."""
        size = self._file.tell()
        _fsync(self._file)
        return {"bytes": size, "blake2b": self._digest.hexdigest()}

    def close(self) -> None:
        self._file.close()


# ------------------------------------------------ write folders


def write_folder(folder: Path, files: Files) -> None:
    """Write a folder with a manifest atomically, replacing an old one; a link stays, and its folder is replaced."""
    folder = folder.resolve() if folder.is_symlink() else folder
    new = folder.with_name(f".new-{folder.name}")
    with os_errors_named(f"write {folder}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(new, ignore_errors=True)
        try:
            new.mkdir()
            _write_files(new, files)
            _rename_over(new, folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        _fsync_folder(folder.parent)
    shutil.rmtree(_aside(folder), ignore_errors=True)


def _rename_over(new: Path, folder: Path) -> None:
    """Rename a folder to a name that may be taken.

    The folder of that name is moved aside, and back on a failure. After a crash `remove_leftovers` moves it back.
    An empty folder is replaced in one step.
    """
    aside = _aside(folder)
    if folder.exists() and any(folder.iterdir()):
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    try:
        new.rename(folder)
    except BaseException:
        if aside.exists():
            aside.rename(folder)
        raise


def _aside(folder: Path) -> Path:
    """Where a folder is while another takes its name."""
    return folder.with_name(f"{ASIDE}{folder.name}")


def write_files(folder: Path, files: Files) -> None:
    """Write files into a folder, each atomically, and the manifest last.

    A name may contain a subfolder: "1_Pooling/config.json".
    """
    with os_errors_named(f"write {folder}"):
        _write_files(folder, files)


def _write_files(folder: Path, files: Files) -> None:
    (folder / MANIFEST).unlink(missing_ok=True)
    manifest = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()}
    for name, data in [*files.items(), (MANIFEST, encode_json(manifest))]:
        (folder / name).parent.mkdir(exist_ok=True)
        _write_file(folder / name, data)


@contextmanager
def create_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `folder` when the block ends without an error.

    FolderExistsError: `folder` exists, before or after the block.
    """
    if folder.exists():
        raise FolderExistsError(f"{folder}: exists already; remove it or choose another name")
    unfinished = temporary_sibling(folder)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _fsync_folder(unfinished)
        try:
            unfinished.rename(folder)
        except OSError as error:
            if folder.exists():
                raise FolderExistsError(f"{folder}: was created by another process") from error
            raise
        _fsync_folder(folder.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def temporary_sibling(folder: Path) -> Path:
    """An unused hidden name beside the folder."""
    return folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")


def remove_folder(folder: Path) -> None:
    """Remove a folder: rename it first, so that nobody reads half of it."""
    if not folder.exists():
        return
    old = folder.with_name(f".old-{folder.name}")
    with os_errors_named(f"remove {folder}"):
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        shutil.rmtree(old)


def remove_leftovers(parent: Path) -> None:
    """Remove what an interrupted save or removal left; a folder that was being replaced gets its name back."""
    with os_errors_named(f"remove what an interrupted save left in {parent}"):
        for aside in parent.glob(f"{ASIDE}*"):
            if not (folder := parent / aside.name.removeprefix(ASIDE)).exists():
                aside.rename(folder)
        for leftover in [*parent.glob(".new-*"), *parent.glob(".old-*"), *parent.glob(f"{ASIDE}*")]:
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()


def _fsync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _fsync_folder(folder: Path) -> None:
    """A rename survives a power failure only after its folder is fsynced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ------------------------------------------------ verify


def verify(folder: Path) -> Manifest:
    """Check every file of a model folder against its manifest; FolderError names the first bad one."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder; wanted a model folder, as `regard train … -o FOLDER` makes it")
    manifest = _read_manifest(folder)
    for name, entry in manifest.items():
        path = folder / name
        if not os.path.isfile(path):  # noqa: PTH113 (Path.is_file raises for names that are too long)
            raise FolderError(
                f"{path} is missing; the manifest lists it. Copy the folder again or use another checkpoint"
            )
        size = path.stat().st_size
        if size != entry["size"]:
            raise FolderError(f"{path} is damaged: {size} bytes, the manifest says {entry['size']}")
        if _sha256(path) != entry["sha256"]:
            raise FolderError(f"{path} is damaged: its SHA-256 differs from the manifest's")
    return manifest


def check_writable(path: Path) -> None:
    """FolderError unless a file can be written there; before the work whose result it gets."""
    if path.is_dir():
        raise FolderError(f"{path} is a folder; wanted the name of a file")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise FolderError(f"{path} cannot be written: {parent} is a file; choose another place")
    if not os.access(parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise FolderError(f"{path} cannot be written: permission denied; choose another place")


def check_digest(path: Path, expected: dict[str, Any]) -> None:
    """DataError unless the file has the size and digest that `DigestedFile.finish` returned."""
    if not path.is_file():
        raise DataError(f"{path}: is missing; create the folder again")
    if (size := path.stat().st_size) != expected["bytes"]:
        raise DataError(f"{path}: got {size:,} bytes, wanted {expected['bytes']:,}; create the folder again")
    if digest(path).hexdigest() != expected["blake2b"]:
        raise DataError(f"{path}: was changed or damaged (its digest differs); create the folder again")


def digest(path: Path) -> "hashlib._Hash":
    """The BLAKE2b digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise FolderError(f"{folder} has no {MANIFEST}: it is not a model folder, or saving it did not finish")
    manifest = read_json(path)
    well_formed = all(
        isinstance(entry, dict) and {"sha256", "size"} <= entry.keys() and _is_inside(name)
        for name, entry in manifest.items()
    )
    if not well_formed:
        raise FolderError(f"{path} is damaged: wanted a SHA-256 and a size for each file of this folder")
    return manifest


def _is_inside(name: str) -> bool:
    """Whether a name stays within its folder."""
    path = Path(name)
    return bool(path.name) and not path.is_absolute() and ".." not in path.parts


# ------------------------------------------------ JSON


def encode_json(value: Any) -> bytes:
    """A value as indented UTF-8 JSON."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object. FolderError: not a JSON object, or one that no program writes: very deep, half characters."""
    try:
        value = json.loads(path.read_bytes())
        _check_values(value)
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path} holds {type(value).__name__}, wanted a JSON object")
    return value


def _check_values(value: Any) -> None:
    """ValueError for what would fail later: values nested too deep, and text that is half of a surrogate pair."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, str):
                _check_text(one)
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, dict):
                inner += [*one, *one.values()]
        if not inner:
            return
        level = inner
    raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text[:40]!r} is not Unicode text") from None
