"""Folders that are there whole or not at all, and that can prove what they hold.

A file is written beside its place, synced and renamed; a folder likewise. MANIFEST.json lists the SHA-256 and size of
every file and is written last, so that it vouches for the others; `verify` holds a folder against it.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from regard.errors import FolderError

MANIFEST = "MANIFEST.json"

Files = Mapping[str, bytes]
Manifest = dict[str, dict[str, Any]]


def write_folder(folder: Path, files: Files) -> None:
    """Make a folder that is there whole or not at all, also when the power goes; one of that name is replaced."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = folder.with_name(f".new-{folder.name}")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        write_files(new, files)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise FolderError(f"cannot write {folder}: {reason}; make room or choose another place") from error
        raise
    remove_folder(folder)
    new.rename(folder)
    _sync(folder.parent)


def write_files(folder: Path, files: Files) -> None:
    """Put files into a folder, each whole or not at all; the manifest last, so that it vouches for the others.

    A name may have a folder before it: "1_Pooling/config.json".
    """
    (folder / MANIFEST).unlink(missing_ok=True)
    manifest = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()}
    for name, data in [*files.items(), (MANIFEST, encode_json(manifest))]:
        (folder / name).parent.mkdir(exist_ok=True)
        write_file(folder / name, data)


def write_file(path: Path, data: bytes) -> None:
    """Replace one file, whole or not at all."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes its name when all went well; until then, what stood there stays."""
    new = path.with_name(f".new-{path.name}")
    try:
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that no half of it is ever seen under its name."""
    if folder.exists():
        gone = folder.with_name(f".old-{folder.name}")
        shutil.rmtree(gone, ignore_errors=True)
        folder.rename(gone)
        shutil.rmtree(gone)


def remove_remains(parent: Path) -> None:
    """Clear away what an interrupted save or removal left."""
    for remains in [*parent.glob(".new-*"), *parent.glob(".old-*")]:
        if remains.is_dir():
            shutil.rmtree(remains)
        else:
            remains.unlink()


def encode_json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _sync(folder: Path) -> None:
    """A rename is safe only once its folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def verify(folder: Path) -> Manifest:
    """Hold every file against the manifest; FolderError names the first that is missing or damaged."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder; wanted a model folder, as `regard train … -o FOLDER` makes it")
    manifest = _read_manifest(folder)
    for name, entry in manifest.items():
        path = folder / name
        if not path.is_file():
            raise FolderError(
                f"{path} is missing; the manifest lists it. Copy the folder again or use another checkpoint"
            )
        size = path.stat().st_size
        if size != entry["size"]:
            raise FolderError(f"{path} is damaged: {size} bytes, the manifest says {entry['size']}")
        if _sha256(path) != entry["sha256"]:
            raise FolderError(f"{path} is damaged: its content is not what the manifest says (SHA-256 differs)")
    return manifest


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise FolderError(f"{folder} has no {MANIFEST}: it is no model folder, or its saving never finished")
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


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a folder."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path} holds {type(value).__name__}, wanted a JSON object")
    return value


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
