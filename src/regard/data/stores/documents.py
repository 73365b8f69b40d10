"""Tokenized documents on disk, sentence by sentence: flat arrays mapped into memory.

A folder holds pieces.ids (all sentences one after another), sentences.offsets (sentence i is
ids[offsets[i] : offsets[i + 1]]), documents.offsets (document d has the sentences from offsets[d] to before
offsets[d + 1]), and index.json with the counts and a digest of each file.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.chunking import Piece
from regard.data.sentences import sentences_of
from regard.data.stores.storage import DigestedFile, mapped, new_folder, read_index, write_index

WHAT = "tokenized documents"
IDS, SENTENCES, DOCUMENTS = "pieces.ids", "sentences.offsets", "documents.offsets"
OFFSET = np.dtype("<i8")
BLOCK = 4096  # sentences tokenized together


class TokenizedDocuments:
    """The pieces of many documents as one row, and where each sentence and each document begins."""

    def __init__(self, ids: np.ndarray, sentences: np.ndarray, documents: np.ndarray) -> None:
        self.ids = ids
        self.sentences = sentences  # in pieces: one more than there are sentences
        self.documents = documents  # in sentences: one more than there are documents

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents) - 1

    @classmethod
    def build(
        cls,
        pieces: Iterable[Piece],
        encode_batch: Callable[[list[str]], list[list[int]]],
        folder: Path,
        *,
        size: int,
    ) -> "TokenizedDocuments":
        """Split and tokenize the documents, some sentences at a time, into a new folder; whole or not at all.

        `size` is that of the vocabulary: up to 65,536 an id takes two bytes, else four. What has no pieces is left out.
        """
        dtype = np.dtype("<u2" if size <= 1 << 16 else "<u4")
        with new_folder(Path(folder)) as unfinished:
            with ExitStack() as stack:
                writer = _Writer(unfinished, dtype, encode_batch, stack)
                for piece in pieces:
                    writer.add(piece)
                facts = writer.finish()
            write_index(unfinished, WHAT, {"dtype": dtype.str, "files": facts})
            # Opened before it gets its name: after that another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "TokenizedDocuments":
        """Open a folder that `build` made. DataError: a file that is missing or not as it was written."""
        folder = Path(folder)
        index = read_index(folder, WHAT, lambda _: {IDS, SENTENCES, DOCUMENTS})
        ids = mapped(folder / IDS, np.dtype(index["dtype"]))
        return cls(ids, mapped(folder / SENTENCES, OFFSET), mapped(folder / DOCUMENTS, OFFSET))

    @classmethod
    def of(cls, documents: Sequence[Sequence[Sequence[int]]]) -> "TokenizedDocuments":
        """The same in memory, from ids."""
        sentences = [sentence for document in documents for sentence in document]
        return cls(
            np.array([number for sentence in sentences for number in sentence], np.int64),
            np.cumsum([0, *map(len, sentences)]),
            np.cumsum([0, *map(len, documents)]),
        )


class _Writer:
    """The files of a folder, written as the pieces come."""

    def __init__(
        self, folder: Path, dtype: np.dtype, encode_batch: Callable[[list[str]], list[list[int]]], stack: ExitStack
    ) -> None:
        self._dtype, self._encode_batch = dtype, encode_batch
        self._files = {
            name: stack.enter_context(closing(DigestedFile(folder / name))) for name in (IDS, SENTENCES, DOCUMENTS)
        }
        for name in (SENTENCES, DOCUMENTS):
            self._files[name].write(np.zeros(1, OFFSET))
        self._waiting: list[str] = []
        self._closing: list[int] = []  # how many of the waiting sentences stand before the end of a document
        self._pieces = self._sentences = self._closed = 0

    def add(self, piece: Piece) -> None:
        self._waiting += sentences_of(piece.text)
        if piece.last:
            self._closing.append(len(self._waiting))
        if len(self._waiting) >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        found = self._encode_batch(self._waiting)
        lengths = np.array([len(ids) for ids in found], OFFSET)
        real = lengths > 0
        ends = self._pieces + np.cumsum(lengths[real], dtype=OFFSET)
        self._files[IDS].write(np.fromiter(chain.from_iterable(found), self._dtype, int(lengths.sum())))
        self._files[SENTENCES].write(ends)
        kept = np.concatenate(([0], np.cumsum(real)))
        documents = self._sentences + kept[self._closing]
        documents = documents[np.diff(documents, prepend=self._closed) > 0]  # the others are empty
        self._files[DOCUMENTS].write(documents.astype(OFFSET))
        self._pieces, self._sentences = self._pieces + int(lengths.sum()), self._sentences + int(kept[-1])
        self._closed = int(documents[-1]) if len(documents) else self._closed
        self._waiting, self._closing = [], []

    def finish(self) -> dict[str, Any]:
        """Bring all to the disk; what the index says of it."""
        self._closing.append(len(self._waiting))  # the pieces may have stopped in the middle of a document
        self._flush()
        return {name: file.finish() for name, file in self._files.items()}
