"""What every model that writes shares with its tokenizer: how many ids there are, and three that are no words."""

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
