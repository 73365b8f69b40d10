"""The three ids every generator shares with its tokenizer."""

from pydantic import Field

from regard.config import Facts


class Symbols(Facts):
    """Ids that are not words."""

    padding: int = Field(0, ge=0, description="fills short rows; nothing ever looks at it")
    begin: int = Field(1, ge=0, description="what the decoder is given first; padding, where it begins with nothing")
    end: int = Field(2, ge=0, description="closes a source and ends a target")
