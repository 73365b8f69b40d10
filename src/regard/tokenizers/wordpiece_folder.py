"""Read a WordPiece tokenizer from a Hugging Face folder: tokenizer.json or vocab.txt, and its special tokens."""

from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import normalizers

from regard.errors import FolderError
from regard.files import read_json
from regard.tokenizers.untrusted import read_tokenizer
from regard.tokenizers.wordpiece_training import SPECIAL_TOKENS, build_core

# Keys of tokenizer_config.json for the normalizer, and our parameters.
NORMALIZER_KEYS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "split_chinese",
}


def read_folder(folder: Path) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """The tokenizer and its special tokens: from tokenizer_config.json, else special_tokens_map.json, else BERT's."""
    folder = Path(folder)
    whole, vocab = folder / "tokenizer.json", folder / "vocab.txt"
    config = _read_optional_json(folder / "tokenizer_config.json")
    special_tokens = (
        SPECIAL_TOKENS
        | _special_tokens(_read_optional_json(folder / "special_tokens_map.json"))
        | _special_tokens(config)
    )
    if whole.is_file():
        return _override_normalizer(read_core(whole), config), special_tokens
    if not vocab.is_file():
        raise FolderError(f"{folder}: has no tokenizer; wanted tokenizer.json or vocab.txt")
    normalizer = {NORMALIZER_KEYS[key]: config[key] for key in NORMALIZER_KEYS if key in config}
    return build_core(_read_tokens(vocab), special_tokens=special_tokens, **normalizer), special_tokens


def read_vocab(path: Path, *, cased: bool) -> tokenizers.Tokenizer:
    """The tokenizer of a vocab.txt, which does not say itself whether it is cased."""
    return build_core(_read_tokens(path), lowercase=not cased)


def _read_tokens(path: Path) -> list[str]:
    """The tokens of a vocab.txt, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{path}: cannot be read as a vocabulary ({error}); copy it again") from error
    return [line.rstrip("\r") for line in lines]


def read_core(source: Path | str | bytes) -> tokenizers.Tokenizer:
    """The tokenizer of a tokenizer.json, from its path or its bytes: mostly WordPiece, but any model will do."""
    return read_tokenizer(source)


def _override_normalizer(core: tokenizers.Tokenizer, config: dict[str, Any]) -> tokenizers.Tokenizer:
    """Apply the normalizer settings of tokenizer_config.json over tokenizer.json's, as `transformers` does."""
    normalizer = core.normalizer
    if isinstance(normalizer, normalizers.BertNormalizer):
        core.normalizer = normalizers.BertNormalizer(
            clean_text=normalizer.clean_text,
            lowercase=config.get("do_lower_case", normalizer.lowercase),
            strip_accents=config.get("strip_accents", normalizer.strip_accents),
            handle_chinese_chars=config.get("tokenize_chinese_chars", normalizer.handle_chinese_chars),
        )
    return core


def _read_optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    given = {key: config[key] for key in SPECIAL_TOKENS if config.get(key) is not None}
    return {key: str(token["content"] if isinstance(token, dict) else token) for key, token in given.items()}
