"""An encoder at work: texts in, vectors out, alike for texts that mean the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError, InputError
from regard.huggingface.folder import Loaded, Pooling
from regard.tasks.encoding import embed_rows
from regard.tokenizers.wordpiece import WordPieceTokenizer


@dataclass(frozen=True)
class Embedded:
    """One text as a vector."""

    text: str
    vector: np.ndarray  # (D,)


def check_several(texts: Sequence[str]) -> None:
    """Texts are a list of strings: a string alone would be read letter by letter."""
    if isinstance(texts, str):
        raise InputError("got one text, wanted a list of texts: [text]")
    wrong = next((number for number, text in enumerate(texts, 1) if not isinstance(text, str)), None)
    if wrong is not None:
        raise InputError(f"text {wrong} is {texts[wrong - 1]!r:.40}, wanted a string")


class Embedder:
    """`embed(["a text", "another"])` gives vectors (N, D); `.model` is the nn.Module, `.tokenizer` its words.

    Any kind of BERT will do. `pooling` is how a text becomes a vector where the caller says nothing; `cut` counts the
    texts so far that were longer than the model reads and lost their ends.
    """

    def __init__(
        self, kind: str, model: nn.Module, tokenizer: WordPieceTokenizer, pooling: Pooling | None = None
    ) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.pooling = pooling or Pooling()
        self.cut = 0

    @classmethod
    def open(cls, folder: ModelFolder) -> "Embedder":
        tokenizer = WordPieceTokenizer.load_saved(folder.folder)
        vocab_size: int = folder.model.config.vocab_size  # type: ignore[union-attr, assignment]
        if tokenizer.vocab_size > vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {vocab_size}: not a pair"
            )
        return cls(folder.kind, folder.model, tokenizer)

    @classmethod
    def adopt(cls, found: Loaded) -> "Embedder":
        """A model of a Hugging Face folder, which may say itself how it pools."""
        return cls(found.kind, found.model, found.tokenizer, found.pooling)

    @property
    def longest(self) -> int:
        """The most pieces of a text it reads, symbols counted."""
        context = int(self.model.config.context)
        return min(self.pooling.longest or context, context)

    def embed(self, texts: Sequence[str], *, normalized: bool | None = None, truncate: bool = True) -> np.ndarray:
        """One vector a text, (N, D), in their order; each is what it would be alone.

        `normalized`: to length 1; none: as the model's folder says. A text that is too long loses its end and is
        counted in `cut`; without `truncate` it is an error.
        """
        rows = self.encode(texts, truncate=truncate)
        pooling = self.pooling if normalized is None else replace(self.pooling, normalized=normalized)
        found: np.ndarray = embed_rows(self.model, rows, pooling).numpy()
        return found

    def encode(self, texts: Sequence[str], *, truncate: bool = True) -> list[list[int]]:
        """The ids of the texts, each between its symbols."""
        check_several(texts)
        room = self.longest - 2
        pieces = self.tokenizer.encode_ids_batch(texts)
        long = [number for number, each in enumerate(pieces) if len(each) > room]
        if long and not truncate:
            raise InputError(
                f"text {long[0] + 1} has {len(pieces[long[0]]) + 2:,} pieces, this model reads {self.longest:,}; "
                "shorten it, or let its end be cut"
            )
        self.cut += len(long)
        return [[self.tokenizer.bos_id, *each[:room], self.tokenizer.eos_id] for each in pieces]

    def run(self, text: str, **options: Any) -> Embedded:
        """The vector of one text; the options are those of `embed`."""
        return self.run_all([text], **options)[0]

    def run_all(self, texts: Sequence[str], **options: Any) -> list[Embedded]:
        """The vectors of many texts, each beside its text."""
        return [Embedded(text, vector) for text, vector in zip(texts, self.embed(texts, **options), strict=True)]
