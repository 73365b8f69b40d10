"""Tokenized documents on disk: one long row of ids in files mapped into memory, so a text may be larger than it.

A folder holds 00000.ids, 00001.ids and so on (all documents one after another, cut into files of equal length),
documents.offsets (where each document begins, and the total), and index.json with the counts and a digest of each file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.chunking import Piece
from regard.data.stores.storage import DigestedFile, mapped, new_folder, read_index, write_index

WHAT = "a token stream"
DOCUMENTS = "documents.offsets"
OFFSET = np.dtype("<i8")


class TokenStream:
    """The tokens of many documents as one row, and where each document begins.

    `text_bytes` is how long the documents are as UTF-8: what a loss is divided by to compare tokenizers.
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
        """The tokens from `start` to before `stop`: a view of the file, or over a border of two a copy."""
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

    def document_of(self, places: np.ndarray) -> np.ndarray:
        """The number of the document that each of these tokens stands in."""
        return np.searchsorted(self._offsets, places, side="right") - 1

    @classmethod
    def build(
        cls,
        pieces: Iterable[Piece],
        encode_batch: Callable[[list[str]], list[list[int]]],
        eos_id: int | None,
        folder: Path,
        *,
        size: int,
        bos_id: int | None = None,
        block: int = 1 << 23,
        shard: int = 1 << 26,
    ) -> "TokenStream":
        """Tokenize the documents, about `block` characters at a time, into a new folder; whole or not at all.

        Each document starts with `bos_id` and ends with `eos_id`, unless they are None or the document was cut there.
        `size` is that of the vocabulary: up to 65,536 an id takes two bytes, else four. A file has
        `shard` tokens.
        """
        dtype = np.dtype("<u2" if size <= 1 << 16 else "<u4")
        with new_folder(Path(folder)) as unfinished:
            with ExitStack() as stack:
                row = _Row(unfinished, dtype, shard, stack, bos_id)
                for several in _blocks(pieces, block):
                    for piece, ids in zip(several, encode_batch([piece.text for piece in several]), strict=True):
                        row.add(piece, ids, eos_id)
                facts = row.finish()
            write_index(unfinished, WHAT, facts)
            # Opened before it gets its name: after that another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "TokenStream":
        """Open a folder that `build` made. DataError: a file that is missing or not as it was written."""
        folder = Path(folder)
        index = read_index(folder, WHAT, _names)
        dtype = np.dtype(index["dtype"])
        shards = [mapped(folder / name, dtype) for name in _shard_names(index["tokens"], index["shard"])]
        return cls(shards, index["shard"], mapped(folder / DOCUMENTS, OFFSET), index["text_bytes"])


def _names(index: dict[str, Any]) -> set[str]:
    return {DOCUMENTS, *_shard_names(index["tokens"], index["shard"])}


def _shard_names(tokens: int, shard: int) -> list[str]:
    return [f"{number:05}.ids" for number in range(-(-tokens // shard))]


def _blocks(pieces: Iterable[Piece], block: int) -> Iterator[list[Piece]]:
    """The pieces, so many together that they have `block` characters: work for all cores, no more than memory."""
    several: list[Piece] = []
    room = block
    for piece in pieces:
        several.append(piece)
        room -= len(piece.text)
        if room <= 0:
            yield several
            several, room = [], block
    if several:
        yield several


class _Row:
    """The files of a folder, written as the pieces come."""

    def __init__(self, folder: Path, dtype: np.dtype, shard: int, stack: ExitStack, bos_id: int | None) -> None:
        self._folder, self._dtype, self._shard, self._stack = folder, dtype, shard, stack
        self._begin = [] if bos_id is None else [bos_id]
        self._offsets = stack.enter_context(closing(DigestedFile(folder / DOCUMENTS)))
        self._offsets.write(np.zeros(1, OFFSET))
        self._file: DigestedFile | None = None
        self._files: dict[str, Any] = {}
        self._tokens = self._documents = self._text_bytes = 0
        self._inside = False

    def add(self, piece: Piece, ids: list[int], eos_id: int | None) -> None:
        self._text_bytes += len(piece.text.encode())
        self._write(np.array(ids if self._inside else [*self._begin, *ids], self._dtype))
        self._inside = not piece.last
        if piece.last:
            if eos_id is not None and not piece.cut:
                self._write(np.array([eos_id], self._dtype))
            self._close_document()

    def _close_document(self) -> None:
        self._documents += 1
        self._offsets.write(np.array([self._tokens], OFFSET))

    def _write(self, ids: np.ndarray) -> None:
        while len(ids):
            if self._file is None:
                path = self._folder / f"{self._tokens // self._shard:05}.ids"
                self._file = self._stack.enter_context(closing(DigestedFile(path)))
            room = self._shard - self._tokens % self._shard
            now, ids = ids[:room], ids[room:]
            self._file.write(now)
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
        """Bring all to the disk; what the index says of it."""
        if self._inside:  # the pieces stopped in the middle of a document
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
