"""What the pipelines of all encoders share: texts in, vectors out. Tasks with a head add their own outputs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, overload

import numpy as np
from torch import nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError, InputError
from regard.huggingface.folder import Loaded, Pooling
from regard.tasks.encoders.encoding import embed_rows
from regard.tasks.show import Showable
from regard.tokenizers.wordpiece import WordPieceTokenizer


def check_texts(texts: Sequence[str]) -> None:
    """InputError unless this is a list of strings: a single string would be read letter by letter."""
    if isinstance(texts, str):
        raise InputError("got one text, wanted a list of texts: [text]")
    wrong = next((number for number, text in enumerate(texts, 1) if not isinstance(text, str)), None)
    if wrong is not None:
        raise InputError(f"text {wrong} is {texts[wrong - 1]!r:.40}, wanted a string")


class EncoderPipeline(Showable):
    """`embed(["a text", "another"])` returns vectors (N, D); `.model` is the nn.Module, `.tokenizer` its tokenizer.

    Works with every kind of BERT. `pooling` is the default way to make one vector of a text; `truncated` counts the
    texts so far that were too long for the model and lost their ends.
    """

    def __init__(
        self, kind: str, model: nn.Module, tokenizer: WordPieceTokenizer, pooling: Pooling | None = None
    ) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.pooling = pooling or Pooling()
        self.truncated = 0

    @classmethod
    def open(cls, folder: ModelFolder) -> Self:
        return cls(folder.kind, folder.model, open_tokenizer(folder))

    @classmethod
    def adopt(cls, found: Loaded) -> Self:
        """A model of a Hugging Face folder, which may set its own pooling."""
        return cls(found.kind, found.model, found.tokenizer, found.pooling)

    @property
    def max_length(self) -> int:
        """The most tokens of a text that the model reads, special tokens included."""
        context = int(self.model.config.context)
        return min(self.pooling.max_length or context, context)

    def embed(self, texts: Sequence[str], *, normalized: bool | None = None, truncate: bool = True) -> np.ndarray:
        """One vector per text, (N, D), in order; each is what it would be alone.

        `normalized`: to length 1; None: as the model's folder says. A text that is too long loses its end and is
        counted in `truncated`; without `truncate` it is an error.
        """
        check_texts(texts)
        rows = self.encode(texts, truncate=truncate)
        pooling = self.pooling if normalized is None else replace(self.pooling, normalized=normalized)
        vectors: np.ndarray = embed_rows(self.model, rows, pooling).numpy()
        return vectors

    @overload
    def encode(self, texts: str, *, truncate: bool = True) -> list[int]: ...  # type: ignore[overload-overlap]  # a str is a Sequence of str too

    @overload
    def encode(self, texts: Sequence[str], *, truncate: bool = True) -> list[list[int]]: ...

    def encode(self, texts: str | Sequence[str], *, truncate: bool = True) -> list[int] | list[list[int]]:
        """The ids of a text, or of each of several, between their special tokens."""
        if isinstance(texts, str):
            return self.encode([texts], truncate=truncate)[0]
        check_texts(texts)
        room = self.max_length - 2
        ids = self.tokenizer.encode_ids_batch(texts)
        long = [number for number, each in enumerate(ids) if len(each) > room]
        if long and not truncate:
            raise InputError(
                f"text {long[0] + 1} has {len(ids[long[0]]) + 2:,} tokens, this model reads {self.max_length:,}; "
                "shorten it, or allow truncation"
            )
        self.truncated += len(long)
        return [[self.tokenizer.bos_id, *each[:room], self.tokenizer.eos_id] for each in ids]


def open_tokenizer(folder: ModelFolder) -> WordPieceTokenizer:
    """The tokenizer of a model folder; FolderError where it has more tokens than the model."""
    tokenizer = WordPieceTokenizer.load_saved(folder.folder)
    vocab_size: int = folder.model.config.vocab_size  # type: ignore[union-attr, assignment]
    if tokenizer.vocab_size > vocab_size:
        raise FolderError(f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {vocab_size}: not a pair")
    return tokenizer
