"""A dataset of tokenized sentence pairs on disk, memory-mapped, so that a corpus may be larger than memory.

A folder holds source.ids and target.ids (all sentences concatenated), source.offsets and target.offsets (sentence i is
ids[offsets[i] : offsets[i + 1]]), and index.json with the counts and a digest of each file.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.stores.memory_map import OFFSET, id_dtype, memory_map, read_index, write_index
from regard.files import DigestedFile, create_folder

WHAT = "tokenized pairs"
SIDES = ("source", "target")
NAMES = {f"{side}.{kind}" for side in SIDES for kind in ("ids", "offsets")}


class TokenizedPairs:
    """A dataset of pairs: `pairs[i]` is (source ids, target ids), views of the memory-mapped files."""

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
        encode_batch: Callable[[list[str]], list[list[int]]],
        folder: Path,
        *,
        vocab_size: int,
        block: int = 4096,
    ) -> "TokenizedPairs":
        """Tokenize the pairs, `block` at a time, into a new folder, created atomically."""
        dtype = id_dtype(vocab_size)
        with create_folder(Path(folder)) as unfinished:
            with ExitStack() as stack:
                sides = [_Side(unfinished, name, dtype, stack) for name in SIDES]
                stream = iter(pairs)
                while several := list(islice(stream, block)):
                    for side, texts in zip(sides, zip(*several, strict=True), strict=True):
                        side.add(encode_batch(list(texts)))
                files = sides[0].finish() | sides[1].finish()
            write_index(unfinished, WHAT, {"pairs": sides[0].count, "dtype": dtype.str, "files": files})
            # Open it before the rename: afterwards another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "TokenizedPairs":
        """Open a folder that `build` wrote. DataError: a file is missing, changed or damaged."""
        folder = Path(folder)
        index = read_index(folder, WHAT, lambda _: NAMES)
        ids = [memory_map(folder / f"{side}.ids", np.dtype(index["dtype"])) for side in SIDES]
        return cls(ids, [memory_map(folder / f"{side}.offsets", OFFSET) for side in SIDES])


class _Side:
    """Writes the two files of one side, block by block."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype, stack: ExitStack) -> None:
        self._name, self._dtype = name, dtype
        self._ids = stack.enter_context(closing(DigestedFile(folder / f"{name}.ids")))
        self._offsets = stack.enter_context(closing(DigestedFile(folder / f"{name}.offsets")))
        self._offsets.write(np.zeros(1, OFFSET).tobytes())
        self._end = 0
        self.count = 0

    def add(self, sentences: list[list[int]]) -> None:
        ends = self._end + np.cumsum([len(ids) for ids in sentences], dtype=OFFSET)
        flat = np.fromiter(chain.from_iterable(sentences), self._dtype, int(ends[-1]) - self._end)
        self._ids.write(flat.tobytes())
        self._offsets.write(ends.tobytes())
        self._end = int(ends[-1])
        self.count += len(sentences)

    def finish(self) -> dict[str, Any]:
        return {f"{self._name}.ids": self._ids.finish(), f"{self._name}.offsets": self._offsets.finish()}
