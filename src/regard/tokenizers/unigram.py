"""A Unigram tokenizer.json (Kudo 2018): the form in which Hugging Face keeps the SentencePiece model of T5."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import FolderError
from regard.tokenizers.metaspace import SPECIAL_TOKENS, MetaspaceTokenizer
from regard.tokenizers.token_bytes import SPACE
from regard.tokenizers.untrusted import read_tokenizer

FILE = "tokenizer.json"


class UnigramTokenizer(MetaspaceTokenizer):
    """A tokenizer over the `tokenizers` library. Make one with `load`."""

    def __init__(self, core: tokenizers.Tokenizer, content: bytes) -> None:
        """`core` was read from `content`. FolderError, without a file name: it is of another kind."""
        parsed = json.loads(content)
        if not (_is_unigram(parsed["model"]) and _has_metaspace(parsed.get("pre_tokenizer"))):
            raise FolderError(f"is no Unigram tokenizer whose words start with {SPACE!r}")
        self._content = content
        added = [token.content for token in core.get_added_tokens_decoder().values()]
        extra = [token for token in added if token not in SPECIAL_TOKENS]
        super().__init__(core.get_vocab(), extra_tokens=extra)
        self._core = _without_special_tokens(parsed, {*added, *SPECIAL_TOKENS})

    @classmethod
    def load(cls, path: Path) -> "UnigramTokenizer":
        """Read a tokenizer.json. FolderError: it cannot be read, or is of another kind."""
        core = read_tokenizer(path)
        try:
            return cls(core, path.read_bytes())
        except FolderError as error:
            raise FolderError(f"{path} {error}; copy it again") from error

    def to_files(self) -> dict[str, bytes]:
        return {FILE: self._content}

    def segment(self, text: str) -> list[str]:
        return self._core.encode(text).tokens


def _without_special_tokens(content: dict[str, Any], special: Collection[str]) -> tokenizers.Tokenizer:
    """The same tokenizer, which segments "</s>" in a text as any other text."""
    # The model has special tokens with probability 1. Renamed, no text has them, and all ids stay.
    vocab = [[f"\uffff{token}" if token in special else token, score] for token, score in content["model"]["vocab"]]
    bare: dict[str, Any] = {"added_tokens": [], "post_processor": None, "padding": None, "truncation": None}
    return tokenizers.Tokenizer.from_str(json.dumps(content | bare | {"model": content["model"] | {"vocab": vocab}}))


def _is_unigram(model: dict[str, Any]) -> bool:
    return model.get("type") == "Unigram" or isinstance(model.get("vocab"), list)  # old files name no type


def _has_metaspace(pre_tokenizer: dict[str, Any] | None) -> bool:
    if pre_tokenizer is None:
        return False
    return pre_tokenizer["type"] == "Metaspace" or any(map(_has_metaspace, pre_tokenizer.get("pretokenizers", [])))
