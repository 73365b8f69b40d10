"""Tokenized pairs on disk: flat arrays mapped into memory, so a corpus may be larger than the memory.

A folder holds source.ids and target.ids (all sentences one after another), source.offsets and target.offsets
(sentence i is ids[offsets[i] : offsets[i + 1]]), and index.json with the counts and a digest of each file.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.storage import DigestedFile, TakenError, digest, hidden_sibling, new_folder, verify
from regard.errors import DataError

log = logging.getLogger("regard")

SIDES = ("source", "target")
OFFSET = np.dtype("<i8")
LAYOUT = 1  # goes up when folders are written in another way; cache entries of the old way are then not found


class TokenizedPairs:
    """Random access to tokenized pairs: `pairs[i]` is (source ids, target ids), views of the files."""

    def __init__(self, ids: Sequence[np.ndarray], offsets: Sequence[np.ndarray]) -> None:
        self._ids = ids
        self._offsets = offsets
        self.source_lengths, self.target_lengths = (np.diff(side) for side in offsets)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        if not 0 <= i < len(self):
            raise IndexError(f"pair {i} of {len(self)}")
        (source, target), (s, t) = self._ids, self._offsets
        return source[s[i] : s[i + 1]], target[t[i] : t[i + 1]]

    @classmethod
    def build(
        cls,
        pairs: Iterable[tuple[str, str]],
        encode_all: Callable[[list[str]], list[list[int]]],
        folder: Path,
        *,
        size: int,
        block: int = 4096,
    ) -> "TokenizedPairs":
        """Tokenize the pairs, `block` at a time, into a new folder; it appears whole or not at all.

        `size` is that of the vocabulary: up to 65,536 an id takes two bytes, else four.
        """
        dtype = np.dtype("<u2" if size <= 1 << 16 else "<u4")
        with new_folder(Path(folder)) as unfinished:
            with ExitStack() as stack:
                sides = [_Side(unfinished, name, dtype, stack) for name in SIDES]
                stream = iter(pairs)
                while several := list(islice(stream, block)):
                    for side, texts in zip(sides, zip(*several, strict=True), strict=True):
                        side.add(encode_all(list(texts)))
                files = sides[0].finish() | sides[1].finish()
            _write_index(unfinished / "index.json", {"pairs": sides[0].count, "dtype": dtype.str, "files": files})
            # Opened before it gets its name: after that another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "TokenizedPairs":
        """Open a folder that `build` made. DataError: a file that is missing or not as it was written."""
        folder = Path(folder)
        index = _read_index(folder / "index.json")
        for name, fact in index["files"].items():
            verify(folder / name, fact)
        ids = [_mapped(folder / f"{side}.ids", np.dtype(index["dtype"])) for side in SIDES]
        return cls(ids, [_mapped(folder / f"{side}.offsets", OFFSET) for side in SIDES])


def cached(key: str, build: Callable[[Path], TokenizedPairs]) -> TokenizedPairs:
    """The pairs under this key of the cache; built by `build(folder)` if they are not there or damaged.

    A damaged entry is one warning in the log. Several processes may ask for the same key at the same time.
    """
    folder = cache_folder() / key
    try:
        while True:
            if folder.exists() and (found := _open_or_discard(folder)):
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


class _Side:
    """The two files of one side, written as the sentences come."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype, stack: ExitStack) -> None:
        self._name, self._dtype = name, dtype
        self._ids = stack.enter_context(closing(DigestedFile(folder / f"{name}.ids")))
        self._offsets = stack.enter_context(closing(DigestedFile(folder / f"{name}.offsets")))
        self._offsets.write(np.zeros(1, OFFSET))
        self._end = 0
        self.count = 0

    def add(self, sentences: list[list[int]]) -> None:
        ends = self._end + np.cumsum([len(ids) for ids in sentences], dtype=OFFSET)
        flat = np.fromiter(chain.from_iterable(sentences), self._dtype, int(ends[-1]) - self._end)
        self._ids.write(flat)
        self._offsets.write(ends)
        self._end = int(ends[-1])
        self.count += len(sentences)

    def finish(self) -> dict[str, Any]:
        return {f"{self._name}.ids": self._ids.finish(), f"{self._name}.offsets": self._offsets.finish()}


def _write_index(path: Path, index: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump({"layout": LAYOUT, **index}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def _read_index(path: Path) -> dict[str, Any]:
    wanted = {f"{side}.{what}" for side in SIDES for what in ("ids", "offsets")}
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        if index["layout"] == LAYOUT and index["files"].keys() == wanted and np.dtype(index["dtype"]):
            return dict(index)
        reason = "not the index of this version"
    except FileNotFoundError:
        reason = "is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
    raise DataError(f"{path}: cannot be read as the index of tokenized pairs ({reason}); make the folder again")


def _mapped(path: Path, dtype: np.dtype) -> np.ndarray:
    if path.stat().st_size == 0:  # nothing can be mapped of an empty file
        return np.empty(0, dtype)
    # A plain array over the map: slices of np.memmap itself are several times slower.
    return np.asarray(np.memmap(path, dtype, mode="r"))


def _open_or_discard(folder: Path) -> TokenizedPairs | None:
    try:
        return TokenizedPairs.open(folder)
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
