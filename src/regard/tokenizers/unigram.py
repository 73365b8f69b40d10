"""A Unigram tokenizer.json (Kudo 2018): the form in which Hugging Face keeps the SentencePiece model of T5."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import FolderError
from regard.tokenizers.metaspace import SPECIAL_TOKENS, MetaspaceTokenizer
from regard.tokenizers.token_bytes import SPACE

FILE = "tokenizer.json"


class UnigramTokenizer(MetaspaceTokenizer):
    """A tokenizer over the `tokenizers` library. Make one with `load`."""

    def __init__(self, content: str) -> None:
        """`content` is the text of a tokenizer.json. FolderError, without a file name: it is of another kind."""
        try:
            core = tokenizers.Tokenizer.from_str(content)
        except Exception as error:  # the library raises bare Exception for a file it cannot read
            raise FolderError(f"cannot be read as a tokenizer.json ({' '.join(str(error).split())})") from error
        if not is_unigram(content):
            raise FolderError(f"is no Unigram tokenizer whose words start with {SPACE!r}")
        self._content = content
        added = [token.content for token in core.get_added_tokens_decoder().values()]
        extra = [token for token in added if token not in SPECIAL_TOKENS]
        super().__init__(core.get_vocab(), extra_tokens=extra)
        self._core = _without_special_tokens(content, {*added, *SPECIAL_TOKENS})

    @classmethod
    def load(cls, path: Path) -> "UnigramTokenizer":
        """Read a tokenizer.json. FolderError: it cannot be read, or is of another kind."""
        try:
            return cls(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise FolderError(f"{path} cannot be read: {error}; copy it again") from error
        except FolderError as error:
            raise FolderError(f"{path} {error}; copy it again") from error

    def to_files(self) -> dict[str, bytes]:
        return {FILE: self._content.encode()}

    def segment(self, text: str) -> list[str]:
        return self._core.encode(text).tokens


def _without_special_tokens(content: str, special: Collection[str]) -> tokenizers.Tokenizer:
    """The same tokenizer, which segments "</s>" in a text as any other text."""
    found = json.loads(content)
    found |= {"added_tokens": [], "post_processor": None, "padding": None, "truncation": None}
    # The model has them as tokens of probability 1. Renamed, no text has them, and all ids stay.
    found["model"]["vocab"] = [
        [f"\uffff{token}" if token in special else token, score] for token, score in found["model"]["vocab"]
    ]
    return tokenizers.Tokenizer.from_str(json.dumps(found))


def is_unigram(content: str) -> bool:
    """Whether a tokenizer.json has a Unigram model and spells spaces as "▁"."""
    found = json.loads(content)
    return found["model"].get("type") == "Unigram" and _has_metaspace(found.get("pre_tokenizer"))


def _has_metaspace(pre_tokenizer: dict[str, Any] | None) -> bool:
    if pre_tokenizer is None:
        return False
    return pre_tokenizer["type"] == "Metaspace" or any(map(_has_metaspace, pre_tokenizer.get("pretokenizers", [])))
