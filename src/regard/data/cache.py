"""The cache of tokenized texts: a folder an entry, named by its content; damaged ones are built again."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.data.storage import LAYOUT, TakenError, digest, hidden_sibling
from regard.errors import DataError

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
        parts += ["".join(path.suffixes).lower().encode(), digest(path).digest()]
    key = hashlib.blake2b(digest_size=16)
    for part in parts:
        key.update(hashlib.blake2b(part).digest())
    return key.hexdigest()


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
