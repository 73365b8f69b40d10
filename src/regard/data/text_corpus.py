"""Text files for a language model, split into training and validation."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from regard.data.chunking import TextChunk
from regard.data.dev_files import DevFilesConfig
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import expand_patterns, read_documents
from regard.data.splits import is_validation

TOKENIZER_SAMPLE = 200_000_000  # characters to train a tokenizer on; more take longer and change little


class TextFilesConfig(DevFilesConfig):
    """How text files are read and split."""

    field: str = Field(
        "text", min_length=1, description="field of a JSON line, or column of a Parquet file, with the text"
    )
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad line or row: stop there, or skip it")
    validation: float = Field(0.1, gt=0, lt=1, description="fraction of the text for validation")
    validation_tokens: int = Field(500_000, ge=2, description="validation tokens that are scored during training")


class TextDataConfig(TextFilesConfig):
    """The same for a language model, with its tokenizer."""

    tokenizer: str = Field(
        "bpe",
        min_length=1,
        description="bpe, characters or bytes; or an existing one: gpt2, a folder, a tokenizer.json, a name on the hub",
    )
    separate_documents: bool = Field(False, description="attend only within the same document of a window")
    word_vectors: Path | None = Field(
        None, description="word vectors to initialize the embedding matrix with: glove.txt"
    )


class TextCorpus:
    """The documents of text files, split into training and validation.

    Many documents are split by document, by a hash of the text (of its first million characters), so no text is on both
    sides. If that would leave fewer than ten for validation, the end of each document is for validation instead.
    """

    min_validation_documents = 10

    def __init__(self, paths: Sequence[Path | str], config: TextFilesConfig) -> None:
        """Reads everything once, to count it and find bad rows: DataError, or a report in `notes`."""
        self.paths = expand_patterns(paths)
        self.dev = expand_patterns(config.dev) if config.dev else []
        self.files = [*self.paths, *self.dev]
        self.config = config
        # Part of the cache key of the tokenized dataset.
        self.settings: dict[str, Any] = config.model_dump(mode="json", include={"field", "on_error", "validation"})
        bad = BadRows()
        self._count(self.chunks(bad))
        if self.dev:
            self.settings |= {"validation": 0, "dev": len(self.dev)}
            sum(1 for _ in self._read(self.dev, bad))
        self.notes = bad.summary()

    def _count(self, chunks: Iterator[TextChunk]) -> None:
        self.documents = self.characters = 0
        few = self.min_validation_documents / self.config.validation
        lengths = [0]
        for chunk in chunks:
            self.characters += len(chunk.text)
            lengths[-1] += len(chunk.text)
            if chunk.is_last:
                self.documents += 1
                if self.documents >= few:
                    lengths.clear()  # needed only for few documents; those of many would fill memory
                lengths.append(0)
        self._lengths = lengths[:-1] if self.documents < few else None

    def chunks(self, report: BadRows | None = None) -> Iterator[TextChunk]:
        """All documents but those of `data.dev`."""
        return self._read(self.paths, BadRows() if report is None else report)

    def training(self) -> Iterator[TextChunk]:
        """The training documents."""
        return self.chunks() if self.dev else self._part(validation=False)

    def validation(self) -> Iterator[TextChunk]:
        """The validation documents."""
        return self._read(self.dev, BadRows()) if self.dev else self._part(validation=True)

    def sample(self) -> Iterator[str]:
        """Texts to train a tokenizer on: the training documents, or a sample of about 200 MB from all over them."""
        seen = taken = 0
        for chunk in self.training():
            seen += len(chunk.text)
            if taken * self.characters <= TOKENIZER_SAMPLE * seen:
                taken += len(chunk.text)
                yield chunk.text

    def _read(self, paths: Sequence[Path], report: BadRows) -> Iterator[TextChunk]:
        return read_documents(paths, field=self.config.field, on_error=self.config.on_error, report=report)

    def _part(self, validation: bool) -> Iterator[TextChunk]:
        if self._lengths is None:
            return select_documents(self.chunks(), self.config.validation, validation)
        splits = [int(length * (1 - self.config.validation)) for length in self._lengths]
        return select_ends(self.chunks(), splits, validation)


def select_documents(chunks: Iterator[TextChunk], fraction: float, validation: bool) -> Iterator[TextChunk]:
    """The validation documents, about this fraction of all; or the training documents."""
    is_first, is_selected = True, False
    for chunk in chunks:
        if is_first:
            is_selected = is_validation(chunk.text, fraction) == validation
        if is_selected:
            yield chunk
        is_first = chunk.is_last


def select_ends(chunks: Iterator[TextChunk], splits: Sequence[int], validation: bool) -> Iterator[TextChunk]:
    """Of document i the text from character splits[i] on (validation), or the text before (training)."""
    document, start = 0, 0
    for chunk in chunks:
        split = min(max(0, splits[document] - start), len(chunk.text))
        if validation and split < len(chunk.text):
            yield TextChunk(chunk.text[split:], is_last=chunk.is_last)
        elif not validation and split:
            done = start + split == splits[document]
            yield TextChunk(chunk.text[:split], is_last=done, is_truncated=done)
        start += len(chunk.text)
        if chunk.is_last:
            document, start = document + 1, 0
