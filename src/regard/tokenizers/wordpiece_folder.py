"""The WordPiece tokenizer of a Hugging Face folder: tokenizer.json or vocab.txt, and what its symbols are called."""

from pathlib import Path
from typing import Any

import tokenizers
from regard.errors import FolderError
from regard.files import read_json
from regard.tokenizers.wordpiece_training import NAMES, made_of
from tokenizers import models, normalizers

KEYS = {"padding": "pad_token", "unknown": "unk_token", "begin": "cls_token", "end": "sep_token", "mask": "mask_token"}
# What tokenizer_config.json may say of the cleaning of a text, and the library's word for it.
CLEANING = {"do_lower_case": "lowercase", "strip_accents": "strip_accents", "tokenize_chinese_chars": "chinese"}


def read_folder(folder: Path) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """The tokenizer, and the names of its symbols: those of tokenizer_config.json, then special_tokens_map.json."""
    folder = Path(folder)
    whole, pieces = folder / "tokenizer.json", folder / "vocab.txt"
    facts = _facts(folder / "tokenizer_config.json")
    names = NAMES | _names(_facts(folder / "special_tokens_map.json")) | _names(facts)
    if whole.is_file():
        return _as_told(read_core(whole), facts), names
    if not pieces.is_file():
        raise FolderError(f"{folder}: has no tokenizer; wanted tokenizer.json or vocab.txt")
    cleaning = {CLEANING[key]: facts[key] for key in CLEANING if key in facts}
    return made_of(_vocabulary(pieces), names=names, **cleaning), names


def read_vocabulary(path: Path, *, cased: bool) -> tokenizers.Tokenizer:
    """The tokenizer of a vocab.txt alone, which does not say itself whether capital letters stay."""
    return made_of(_vocabulary(path), lowercase=not cased)


def _vocabulary(path: Path) -> list[str]:
    """The pieces of a vocab.txt, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{path}: cannot be read as a vocabulary ({error}); copy it again") from error
    return [line.rstrip("\r") for line in lines]


def read_core(source: Path | str | bytes) -> tokenizers.Tokenizer:
    """The tokenizer of a tokenizer.json, from its path or as its bytes; FolderError if it is no WordPiece."""
    name = "the tokenizer" if isinstance(source, bytes) else source
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        core = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises bare Exception for a file it cannot read
        reason = " ".join(str(error).split())
        raise FolderError(f"{name}: cannot be read as a tokenizer.json ({reason})") from error
    if not isinstance(core.model, models.WordPiece):
        raise FolderError(f"{name}: its pieces are {type(core.model).__name__}, wanted WordPiece, as BERT has it")
    return core


def _as_told(core: tokenizers.Tokenizer, facts: dict[str, Any]) -> tokenizers.Tokenizer:
    """What tokenizer_config.json says of the cleaning goes before tokenizer.json, as `transformers` has it."""
    normalizer = core.normalizer
    if isinstance(normalizer, normalizers.BertNormalizer):
        core.normalizer = normalizers.BertNormalizer(
            clean_text=normalizer.clean_text,
            lowercase=facts.get("do_lower_case", normalizer.lowercase),
            strip_accents=facts.get("strip_accents", normalizer.strip_accents),
            handle_chinese_chars=facts.get("tokenize_chinese_chars", normalizer.handle_chinese_chars),
        )
    return core


def _facts(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _names(facts: dict[str, Any]) -> dict[str, str]:
    said = {symbol: facts[key] for symbol, key in KEYS.items() if facts.get(key) is not None}
    return {symbol: str(name["content"] if isinstance(name, dict) else name) for symbol, name in said.items()}
