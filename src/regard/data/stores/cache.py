"""The cache of tokenized texts: a folder an entry, named by its content; damaged ones are built again."""

import functools
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.data.readers.documents import expand
from regard.data.stores.storage import LAYOUT, TakenError, digest, hidden_sibling
from regard.errors import DataError
from regard.files import MANIFEST

OWN = {"run.json", MANIFEST}  # one of these is in each folder of a run or a model

log = logging.getLogger("regard")

T = TypeVar("T")


def cached(key: str, build: Callable[[Path], T], open_folder: Callable[[Path], T]) -> T:
    """What the cache has under this key; built by `build(folder)` if it is not there or damaged.

    `open_folder` opens what `build` made, and raises DataError when it is not as it was written.
    A damaged entry is one warning in the log. Several processes may ask for the same key at the same time.
    """
    folder = cache_folder() / key
    try:
        while True:
            if folder.exists() and (found := _open_or_discard(folder, open_folder)) is not None:
                return found
            try:
                return build(folder)
            except TakenError:
                continue  # another process was faster: its work is as good
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cache {folder}: {reason}; set REGARD_CACHE to a folder with room to write") from error


def cache_folder() -> Path:
    """$REGARD_CACHE, or else regard in the user's cache folder."""
    if given := os.environ.get("REGARD_CACHE"):
        return Path(given).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "regard"


def content_key(paths: Sequence[Path], tokenizer_bytes: bytes, settings: Mapping[str, Any]) -> str:
    """A name for what comes out of these file contents, this tokenizer and these settings (JSON values)."""
    parts = [json.dumps([LAYOUT, settings], sort_keys=True).encode(), tokenizer_bytes]
    for path in map(Path, paths):
        # The endings count, because they say how the contents are read.
        parts += ["".join(path.suffixes).lower().encode(), _digest(path)]
    return _key(parts)


def fingerprint(path: Path) -> str | None:
    """A name for what a file holds, or the files of a pattern; None where that cannot be read.

    Of a folder only names and sizes count, since all its pictures would take minutes to read; and of these no hidden
    ones, and none of the runs and models that are kept in it.
    """
    try:
        return _key(_names_and_sizes(path) if path.is_dir() else map(_digest, expand([path])))
    except (OSError, DataError):
        return None  # whoever reads it says why


def changed_since(paths: Sequence[Path], fingerprints: Sequence[str | None]) -> list[Path]:
    """Those that no longer have their fingerprint; one that is not known, then or now, tells nothing."""
    known = [(path, before) for path, before in zip(paths, fingerprints, strict=False) if before is not None]
    return [path for path, before in known if fingerprint(path) not in (before, None)]


def _key(parts: Iterable[bytes]) -> str:
    key = hashlib.blake2b(digest_size=16)
    for part in parts:
        key.update(hashlib.blake2b(part).digest())
    return key.hexdigest()


def _digest(path: Path) -> bytes:
    """Of a file's content; read once, as long as the file stays as it is."""
    facts = path.stat()
    return _digest_of(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)


@functools.cache
def _digest_of(path: Path, *facts: int) -> bytes:
    return digest(path).digest()


def _names_and_sizes(folder: Path) -> Iterator[bytes]:
    for place, folders, names in os.walk(folder):
        if not OWN.isdisjoint(names):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in sorted(Path(place, name) for name in names if not name.startswith(".")):
            yield os.fsencode(path.relative_to(folder)) + b" %d" % path.stat().st_size


def _open_or_discard(folder: Path, open_folder: Callable[[Path], T]) -> T | None:
    try:
        return open_folder(folder)
    except DataError as error:
        log.warning("cache entry is damaged and is built again: %s", error)
    # Moved aside first: no other process may meet the folder half removed.
    aside = hidden_sibling(folder)
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return None  # another process was faster
    shutil.rmtree(aside, ignore_errors=True)
    return None
