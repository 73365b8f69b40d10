"""A dataset of tokenized documents on disk, sentence by sentence, memory-mapped.

A folder holds pieces.ids (the tokens of all sentences, concatenated), sentences.offsets (sentence i is
ids[offsets[i] : offsets[i + 1]]), documents.offsets (document d has the sentences from offsets[d] to before
offsets[d + 1]), and index.json with the counts and a digest of each file.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.chunking import TextChunk
from regard.data.sentences import split_sentences
from regard.data.stores.memory_map import OFFSET, id_dtype, memory_map, read_index, write_index
from regard.files import DigestedFile, create_folder

WHAT = "tokenized documents"
IDS, SENTENCES, DOCUMENTS = "pieces.ids", "sentences.offsets", "documents.offsets"
BLOCK = 4096  # sentences tokenized together


class TokenizedDocuments:
    """The tokens of many documents as one sequence, and where each sentence and each document starts."""

    def __init__(self, ids: np.ndarray, sentences: np.ndarray, documents: np.ndarray) -> None:
        self.ids = ids
        self.sentences = sentences  # offsets in tokens: one more than there are sentences
        self.documents = documents  # offsets in sentences: one more than there are documents

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.documents) - 1

    @classmethod
    def build(
        cls,
        chunks: Iterable[TextChunk],
        encode_batch: Callable[[list[str]], list[list[int]]],
        folder: Path,
        *,
        vocab_size: int,
    ) -> "TokenizedDocuments":
        """Split the documents into sentences and tokenize them into a new folder, created atomically.

        Sentences and documents without tokens are left out.
        """
        dtype = id_dtype(vocab_size)
        with create_folder(Path(folder)) as unfinished:
            with ExitStack() as stack:
                writer = _Writer(unfinished, dtype, encode_batch, stack)
                for chunk in chunks:
                    writer.add(chunk)
                files = writer.finish()
            write_index(unfinished, WHAT, {"dtype": dtype.str, "files": files})
            # Open it before the rename: afterwards another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "TokenizedDocuments":
        """Open a folder that `build` wrote. DataError: a file is missing, changed or damaged."""
        folder = Path(folder)
        index = read_index(folder, WHAT, lambda _: {IDS, SENTENCES, DOCUMENTS})
        ids = memory_map(folder / IDS, np.dtype(index["dtype"]))
        return cls(ids, memory_map(folder / SENTENCES, OFFSET), memory_map(folder / DOCUMENTS, OFFSET))

    @classmethod
    def of(cls, documents: Sequence[Sequence[Sequence[int]]]) -> "TokenizedDocuments":
        """The same in memory, from token ids."""
        sentences = [sentence for document in documents for sentence in document]
        return cls(
            np.array([number for sentence in sentences for number in sentence], np.int64),
            np.cumsum([0, *map(len, sentences)]),
            np.cumsum([0, *map(len, documents)]),
        )


class _Writer:
    """Writes the files of a folder, block by block."""

    def __init__(
        self, folder: Path, dtype: np.dtype, encode_batch: Callable[[list[str]], list[list[int]]], stack: ExitStack
    ) -> None:
        self._dtype, self._encode_batch = dtype, encode_batch
        self._files = {
            name: stack.enter_context(closing(DigestedFile(folder / name))) for name in (IDS, SENTENCES, DOCUMENTS)
        }
        for name in (SENTENCES, DOCUMENTS):
            self._files[name].write(np.zeros(1, OFFSET).tobytes())
        self._pending: list[str] = []
        self._document_ends: list[
            int
        ] = []  # of each document that ends here, the number of pending sentences before its end
        self._tokens = self._sentences = self._last_end = 0

    def add(self, chunk: TextChunk) -> None:
        self._pending += split_sentences(chunk.text)
        if chunk.is_last:
            self._document_ends.append(len(self._pending))
        if len(self._pending) >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        found = self._encode_batch(self._pending)
        lengths = np.array([len(ids) for ids in found], OFFSET)
        real = lengths > 0
        ends = self._tokens + np.cumsum(lengths[real], dtype=OFFSET)
        self._files[IDS].write(np.fromiter(chain.from_iterable(found), self._dtype, int(lengths.sum())).tobytes())
        self._files[SENTENCES].write(ends.tobytes())
        kept = np.concatenate(([0], np.cumsum(real)))
        documents = self._sentences + kept[self._document_ends]
        documents = documents[np.diff(documents, prepend=self._last_end) > 0]  # without empty documents
        self._files[DOCUMENTS].write(documents.astype(OFFSET).tobytes())
        self._tokens, self._sentences = self._tokens + int(lengths.sum()), self._sentences + int(kept[-1])
        self._last_end = int(documents[-1]) if len(documents) else self._last_end
        self._pending, self._document_ends = [], []

    def finish(self) -> dict[str, Any]:
        """Flush all to disk. Returns size and digest of each file."""
        self._document_ends.append(len(self._pending))  # the chunks may have ended inside a document
        self._flush()
        return {name: file.finish() for name, file in self._files.items()}
