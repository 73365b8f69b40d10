"""A dataset of tokenized documents on disk: one long token stream in memory-mapped shards.

A folder holds the shards 00000.ids, 00001.ids and so on (all documents concatenated, cut into files of equal length),
documents.offsets (where each document starts, and the total), and index.json with the counts and a digest of each file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.chunking import TextChunk
from regard.data.stores.memory_map import OFFSET, id_dtype, memory_map, read_index, write_index
from regard.files import DigestedFile, create_folder

WHAT = "a token stream"
DOCUMENTS = "documents.offsets"


class TokenStream:
    """The tokens of many documents as one sequence, and where each document starts.

    `text_bytes` is the size of the documents in UTF-8: bits per byte compare models with different tokenizers.
    """

    def __init__(self, shards: Sequence[np.ndarray], shard: int, offsets: np.ndarray, text_bytes: int) -> None:
        self._shards = shards
        self._shard = shard
        self._offsets = offsets
        self.text_bytes = text_bytes
        self.documents = len(offsets) - 1

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def tokens(self, start: int, stop: int) -> np.ndarray:
        """The tokens from `start` to before `stop`: a view of one shard, or a copy from several."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"tokens {start} to {stop} of {len(self)}")
        first, last = start // self._shard, max(start, stop - 1) // self._shard
        parts = [
            self._shards[i][max(0, start - i * self._shard) : stop - i * self._shard]
            for i in range(first, min(last + 1, len(self._shards)))
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, self.dtype), *parts])

    @property
    def dtype(self) -> np.dtype:
        return self._shards[0].dtype if self._shards else np.dtype("<u2")

    def document_of(self, positions: np.ndarray) -> np.ndarray:
        """The number of the document that each of these token positions belongs to."""
        return np.searchsorted(self._offsets, positions, side="right") - 1

    @classmethod
    def build(
        cls,
        chunks: Iterable[TextChunk],
        encode_batch: Callable[[list[str]], list[list[int]]],
        eos_id: int | None,
        folder: Path,
        *,
        vocab_size: int,
        bos_id: int | None = None,
        block: int = 1 << 21,
        shard: int = 1 << 26,
    ) -> "TokenStream":
        """Tokenize the documents, about `block` characters at a time, into a new folder, created atomically.

        Each document starts with `bos_id` and ends with `eos_id`, unless they are None or the document was truncated
        there. A shard has `shard` tokens.
        """
        dtype = id_dtype(vocab_size)
        with create_folder(Path(folder)) as unfinished:
            with ExitStack() as stack:
                writer = _Writer(unfinished, dtype, shard, stack, bos_id)
                for several in _blocks(chunks, block):
                    for chunk, ids in zip(several, encode_batch([chunk.text for chunk in several]), strict=True):
                        writer.add(chunk, ids, eos_id)
                index = writer.finish()
            write_index(unfinished, WHAT, index)
            # Open it before the rename: afterwards another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "TokenStream":
        """Open a folder that `build` wrote. DataError: a file is missing, changed or damaged."""
        folder = Path(folder)
        index = read_index(folder, WHAT, _names)
        dtype = np.dtype(index["dtype"])
        shards = [memory_map(folder / name, dtype) for name in _shard_names(index["tokens"], index["shard"])]
        return cls(shards, index["shard"], memory_map(folder / DOCUMENTS, OFFSET), index["text_bytes"])


def _names(index: dict[str, Any]) -> set[str]:
    return {DOCUMENTS, *_shard_names(index["tokens"], index["shard"])}


def _shard_names(tokens: int, shard: int) -> list[str]:
    return [f"{number:05}.ids" for number in range(-(-tokens // shard))]


def _blocks(chunks: Iterable[TextChunk], block: int) -> Iterator[list[TextChunk]]:
    """Group chunks to about `block` characters: enough work for all cores, little enough for memory."""
    several: list[TextChunk] = []
    room = block
    for chunk in chunks:
        several.append(chunk)
        room -= len(chunk.text)
        if room <= 0:
            yield several
            several, room = [], block
    if several:
        yield several


class _Writer:
    """Writes the files of a folder, chunk by chunk."""

    def __init__(self, folder: Path, dtype: np.dtype, shard: int, stack: ExitStack, bos_id: int | None) -> None:
        self._folder, self._dtype, self._shard, self._stack = folder, dtype, shard, stack
        self._bos = [] if bos_id is None else [bos_id]
        self._offsets = stack.enter_context(closing(DigestedFile(folder / DOCUMENTS)))
        self._offsets.write(np.zeros(1, OFFSET).tobytes())
        self._file: DigestedFile | None = None
        self._files: dict[str, Any] = {}
        self._tokens = self._documents = self._text_bytes = 0
        self._in_document = False

    def add(self, chunk: TextChunk, ids: list[int], eos_id: int | None) -> None:
        self._text_bytes += len(chunk.text.encode())
        self._write(np.array(ids if self._in_document else [*self._bos, *ids], self._dtype))
        self._in_document = not chunk.is_last
        if chunk.is_last:
            if eos_id is not None and not chunk.is_truncated:
                self._write(np.array([eos_id], self._dtype))
            self._close_document()

    def _close_document(self) -> None:
        self._documents += 1
        self._offsets.write(np.array([self._tokens], OFFSET).tobytes())

    def _write(self, ids: np.ndarray) -> None:
        while len(ids):
            if self._file is None:
                path = self._folder / f"{self._tokens // self._shard:05}.ids"
                self._file = self._stack.enter_context(closing(DigestedFile(path)))
            room = self._shard - self._tokens % self._shard
            now, ids = ids[:room], ids[room:]
            self._file.write(now.tobytes())
            self._tokens += len(now)
            if len(now) == room:
                self._finish_shard()

    def _finish_shard(self) -> None:
        if self._file is not None:
            name = f"{(self._tokens - 1) // self._shard:05}.ids"
            self._files[name] = self._file.finish()
            self._file.close()
            self._file = None

    def finish(self) -> dict[str, Any]:
        """Flush all to disk. Returns the index."""
        if self._in_document:  # the chunks ended inside a document
            self._close_document()
        self._finish_shard()
        self._files[DOCUMENTS] = self._offsets.finish()
        return {
            "tokens": self._tokens,
            "documents": self._documents,
            "text_bytes": self._text_bytes,
            "dtype": self._dtype.str,
            "shard": self._shard,
            "files": self._files,
        }
