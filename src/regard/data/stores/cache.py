"""The cache of tokenized datasets: a folder an entry, named by a hash of its content; damaged ones are rebuilt."""

import functools
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.data.readers.documents import expand_patterns
from regard.data.stores.memory_map import LAYOUT
from regard.errors import DataError
from regard.files import MANIFEST, FolderExistsError, digest, temporary_sibling

OWN_FILES = {"run.json", MANIFEST}  # every run folder and model folder has one of these

log = logging.getLogger("regard")

T = TypeVar("T")


def cached(key: str, build: Callable[[Path], T], open_folder: Callable[[Path], T]) -> T:
    """Open the cache entry of this key; build it with `build(folder)` if it is missing or damaged.

    `open_folder` opens what `build` wrote, and raises DataError for a damaged folder, which is logged as a warning.
    Safe for several processes that need the same key at the same time.
    """
    folder = cache_folder() / key
    try:
        while True:
            if folder.exists() and (found := _open_or_discard(folder, open_folder)) is not None:
                return found
            try:
                return build(folder)
            except FolderExistsError:
                continue  # another process was faster: use its result
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cache {folder}: {reason}; set REGARD_CACHE to a writable folder with free space") from error


def cache_folder() -> Path:
    """$REGARD_CACHE, or else `regard` in the user's cache folder."""
    if given := os.environ.get("REGARD_CACHE"):
        return Path(given).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "regard"


def content_key(paths: Sequence[Path], tokenizer_bytes: bytes, settings: Mapping[str, Any]) -> str:
    """The cache key of a dataset: a hash of file contents, tokenizer and settings (JSON values)."""
    parts = [json.dumps([LAYOUT, settings], sort_keys=True).encode(), tokenizer_bytes]
    for path in map(Path, paths):
        # The suffixes count, because they decide how the contents are parsed.
        parts += ["".join(path.suffixes).lower().encode(), _digest(path)]
    return _key(parts)


def fingerprint(path: Path) -> str | None:
    """A hash of a file's content, or of the files of a pattern; None if it cannot be read.

    For a folder only names and sizes count, since reading all its images would take minutes. Hidden files and the run
    and model folders inside it are left out.
    """
    try:
        return _key(_names_and_sizes(path) if path.is_dir() else map(_digest, expand_patterns([path])))
    except (OSError, DataError):
        return None  # the reader raises the error


def changed_since(paths: Sequence[Path], fingerprints: Sequence[str | None]) -> list[Path]:
    """The paths whose fingerprint changed; an unknown fingerprint, then or now, is no change."""
    known = [(path, before) for path, before in zip(paths, fingerprints, strict=False) if before is not None]
    return [path for path, before in known if fingerprint(path) not in (before, None)]


def _key(parts: Iterable[bytes]) -> str:
    key = hashlib.blake2b(digest_size=16)
    for part in parts:
        key.update(hashlib.blake2b(part).digest())
    return key.hexdigest()


def _digest(path: Path) -> bytes:
    """The digest of a file's content; read once while the file stays unchanged."""
    stat = path.stat()
    return _digest_of(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@functools.cache
def _digest_of(path: Path, *stat: int) -> bytes:
    return digest(path).digest()


def _names_and_sizes(folder: Path) -> Iterator[bytes]:
    for parent, folders, names in os.walk(folder):
        if not OWN_FILES.isdisjoint(names):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in sorted(Path(parent, name) for name in names if not name.startswith(".")):
            yield os.fsencode(path.relative_to(folder)) + b" %d" % path.stat().st_size


def _open_or_discard(folder: Path, open_folder: Callable[[Path], T]) -> T | None:
    try:
        return open_folder(folder)
    except DataError as error:
        log.warning("cache entry is damaged and will be rebuilt: %s", error)
    # Rename it first: no other process may open a half-removed folder.
    aside = temporary_sibling(folder)
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return None  # another process was faster
    shutil.rmtree(aside, ignore_errors=True)
    return None
