"""What every model shares with its tokenizer: how many ids there are, and which of them are no words."""

from typing import Self

from pydantic import Field, model_validator

from regard.config import Facts
from regard.errors import ConfigError


class Symbols(Facts):
    """Ids that are not words."""

    padding: int = Field(0, ge=0, description="fills short rows; nothing ever looks at it")
    begin: int = Field(1, ge=0, description="what the decoder is given first; padding, where it begins with nothing")
    end: int = Field(2, ge=0, description="closes a source and ends a target")


class Writer(Facts):
    """The facts of a model that reads and writes ids."""

    vocabulary: int = Field(
        37_000, ge=4, description="ids the shared table has; a new tokenizer is trained to this size"
    )
    symbols: Symbols = Symbols()

    @model_validator(mode="after")
    def _symbols_are_ids(self) -> Self:
        least = min(self.vocabulary, self.written)
        if max(self.symbols.padding, self.symbols.begin, self.symbols.end) >= least:
            raise ConfigError(f"model.symbols are {self.symbols}, but there are only {least} ids")
        return self

    @property
    def written(self) -> int:
        """How many ids it chooses from when it writes."""
        return self.vocabulary

    def fitted(self, *, vocabulary: int, symbols: Symbols, longest: int) -> Self:
        """The same for one tokenizer of both sides and sentences of up to `longest` tokens, if they go together."""
        if self.symbols not in (Symbols(), symbols):
            raise ConfigError(f"model.symbols are the tokenizer's own ({symbols}); leave them out")
        return self.model_copy(update={"vocabulary": vocabulary, "symbols": symbols})


class TextSymbols(Facts):
    """Those of a language model: rows need no padding symbol, since their prompts say how long they are."""

    padding: None = None
    begin: int | None = Field(None, ge=0, description="stands before a text, where the model was trained so")
    end: int | None = Field(None, ge=0, description="stands behind a text")


class ReaderSymbols(Facts):
    """Those of a model that reads and does not write."""

    padding: int = Field(0, ge=0, description="fills short rows; nothing ever looks at it")
    begin: int = Field(101, ge=0, description="stands before every text: [CLS]")
    end: int = Field(102, ge=0, description="closes each sentence: [SEP]")
    mask: int | None = Field(103, ge=0, description="stands for a hidden word: [MASK]; none: it has no such symbol")


class LanguageConfig(Facts):
    """The facts of every language model."""

    vocabulary: int = Field(
        50_257, ge=2, description="ids the table has; a new tokenizer is trained to at most this size"
    )
    context: int = Field(1024, ge=1, description="the most tokens it sees at once")
    symbols: TextSymbols = TextSymbols()

    @model_validator(mode="after")
    def _symbols_are_ids(self) -> Self:
        for name in ("begin", "end"):
            number = getattr(self.symbols, name)
            if number is not None and number >= self.vocabulary:
                raise ConfigError(f"model.symbols.{name}={number}, but there are only {self.vocabulary} ids")
        return self

    @property
    def written(self) -> int:
        """How many ids it chooses from when it writes."""
        return self.vocabulary

    def fitted(self, *, vocabulary: int, symbols: TextSymbols) -> Self:
        """The same for one tokenizer."""
        if self.symbols not in (TextSymbols(), symbols):
            raise ConfigError(f"model.symbols are the tokenizer's own ({symbols}); leave them out")
        return self.model_copy(update={"vocabulary": vocabulary, "symbols": symbols})


def heads_fit(width: int, heads: int) -> None:
    """ConfigError unless the width divides into the heads."""
    if width % heads:
        raise ConfigError(
            f"model.width={width} does not divide into model.heads={heads}; "
            f"try model.width={width - width % heads or heads}"
        )
