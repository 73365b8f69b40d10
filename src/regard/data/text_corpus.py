"""The user's text for a language model: what is trained on, and what is kept out to measure on."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from regard.config import Config
from regard.data.chunking import Piece
from regard.data.readers.documents import expand, read_documents
from regard.data.readers.pairs import BadLines, is_validation

SAMPLE = 200_000_000  # characters that a tokenizer is trained on; more change little but the time
ENOUGH = 10  # documents kept out, when whole ones are


class TextFilesConfig(Config):
    """How the user's text is read and split."""

    field: str = Field("text", min_length=1, description="where a JSON line or a Parquet row has its text")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad line or row: stop there, or skip it")
    validation: float = Field(0.1, gt=0, lt=1, description="share of the text kept out of training")
    validation_tokens: int = Field(500_000, ge=2, description="held-out tokens that evaluation in training uses")


class TextDataConfig(TextFilesConfig):
    """The same for a language model, and how text is cut into tokens."""

    tokenizer: str = Field(
        "bpe",
        min_length=1,
        description="bpe, characters or bytes; or ready-made: gpt2, a folder, a tokenizer.json, a name on the hub",
    )
    separate_documents: bool = Field(False, description="attention stays inside each document of a window")
    word_vectors: Path | None = Field(None, description="word vectors to initialize the embeddings with: glove.txt")


class TextCorpus:
    """The documents of the user's files, split in two.

    Of many documents whole ones are kept out, by a hash of their text (of its first million characters): no text is
    ever on both sides. Where that would be fewer than ten, of each document the end is kept out: of a single one the
    last tenth of its characters, say.
    """

    enough = ENOUGH

    def __init__(self, paths: Sequence[Path | str], config: TextFilesConfig) -> None:
        """Reads everything once, to count it and to find what is bad: DataError, or lines in `notes`."""
        self.files = expand(paths)
        self.config = config
        # What the tokens on disk depend on, beside the files and the tokenizer.
        self.settings: dict[str, Any] = config.model_dump(mode="json", include={"field", "on_error", "validation"})
        bad = BadLines()
        self._count(self._read(bad))
        self.notes = bad.summary()

    def _count(self, pieces: Iterator[Piece]) -> None:
        self.documents = self.characters = 0
        few = self.enough / self.config.validation
        lengths = [0]
        for piece in pieces:
            self.characters += len(piece.text)
            lengths[-1] += len(piece.text)
            if piece.last:
                self.documents += 1
                if self.documents >= few:
                    lengths.clear()  # needed only where documents are few: of many they would fill the memory
                lengths.append(0)
        self._lengths = lengths[:-1] if self.documents < few else None

    def pieces(self) -> Iterator[Piece]:
        """All documents."""
        return self._read(BadLines())

    def training(self) -> Iterator[Piece]:
        """The part to train on."""
        return self._part(validation=False)

    def validation(self) -> Iterator[Piece]:
        """The part kept out."""
        return self._part(validation=True)

    def sample(self) -> Iterator[str]:
        """Texts to train a tokenizer on: all of the training part, or pieces from all over it, about 200 MB."""
        seen = taken = 0
        for piece in self.training():
            seen += len(piece.text)
            if taken * self.characters <= SAMPLE * seen:
                taken += len(piece.text)
                yield piece.text

    def _read(self, report: BadLines) -> Iterator[Piece]:
        return read_documents(self.files, field=self.config.field, on_error=self.config.on_error, report=report)

    def _part(self, validation: bool) -> Iterator[Piece]:
        if self._lengths is None:
            return whole_documents(self.pieces(), self.config.validation, validation)
        ends = [int(length * (1 - self.config.validation)) for length in self._lengths]
        return ends_of_documents(self.pieces(), ends, validation)


def whole_documents(pieces: Iterator[Piece], share: float, validation: bool) -> Iterator[Piece]:
    """The documents that are kept out, about this share of them, or all the others."""
    begins, wanted = True, False
    for piece in pieces:
        if begins:
            wanted = is_validation(piece.text, share) == validation
        if wanted:
            yield piece
        begins = piece.last


def ends_of_documents(pieces: Iterator[Piece], places: Sequence[int], validation: bool) -> Iterator[Piece]:
    """Of document i what comes from character places[i] on, or what comes before."""
    document, start = 0, 0
    for piece in pieces:
        cut = min(max(0, places[document] - start), len(piece.text))
        if validation and cut < len(piece.text):
            yield Piece(piece.text[cut:], last=piece.last)
        elif not validation and cut:
            done = start + cut == places[document]
            yield Piece(piece.text[:cut], last=done, cut=done)
        start += len(piece.text)
        if piece.last:
            document, start = document + 1, 0
