"""Read a language model's tokenizer from a Hugging Face folder: tokenizer, bos and eos ids, chat template."""

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from regard.errors import FolderError
from regard.files import read_json
from regard.tokenizers.characters import EOS_TOKEN
from regard.tokenizers.untrusted import read_tokenizer

FolderTokenizer = tuple[tokenizers.Tokenizer, int | None, list[int], str | None]


def read_folder(folder: Path) -> FolderTokenizer:
    """Tokenizer, bos id, eos ids and chat template.

    Token names take precedence over ids: tokenizer_config.json and special_tokens_map.json, then
    generation_config.json and config.json. Generation may stop at more tokens than the named one: they follow it.
    """
    folder = Path(folder)
    core = _read_core(folder)
    tokenizer_config, special_tokens, generation, config = (
        _read_optional_json(folder / f"{name}.json")
        for name in ("tokenizer_config", "special_tokens_map", "generation_config", "config")
    )
    bos_ids = _ids_by_name(core, folder, "bos_token", tokenizer_config, special_tokens)
    if bos_ids is None:
        bos_ids = _ids_by_number(core, folder, "bos_token_id", generation, config)
    eos_ids = _ids_by_name(core, folder, "eos_token", tokenizer_config, special_tokens) or []
    eos_ids += _ids_by_number(core, folder, "eos_token_id", tokenizer_config, generation, config)
    return core, bos_ids[0] if bos_ids else None, eos_ids, _chat_template(folder, tokenizer_config)


def _read_core(folder: Path) -> tokenizers.Tokenizer:
    whole, vocab, merges = (folder / name for name in ("tokenizer.json", "vocab.json", "merges.txt"))
    if not whole.is_file() and not (vocab.is_file() and merges.is_file()):
        raise FolderError(f"{folder}: has no tokenizer; wanted tokenizer.json, or vocab.json and merges.txt")
    if whole.is_file():
        return read_tokenizer(whole)
    try:
        return _build_gpt2(json.loads(vocab.read_bytes()), merges.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception for a file it cannot read
        reason = " ".join(str(error).split())
        raise FolderError(f"{vocab} and merges.txt: cannot be read as a tokenizer ({reason}); copy it again") from error


def _build_gpt2(vocab: dict[str, int], merges: str) -> tokenizers.Tokenizer:
    lines = [line.split(" ") for line in merges.split("\n") if line and not line.startswith("#version")]
    core = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[(left, right) for left, right in lines]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    if EOS_TOKEN in vocab:
        core.add_special_tokens([EOS_TOKEN])
    return core


def _read_optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _ids_by_name(core: tokenizers.Tokenizer, folder: Path, key: str, *configs: dict[str, Any]) -> list[int] | None:
    """The token id of the first config that has the key: [] if its value is null, None if no config has the key."""
    for config in configs:
        if key in config:
            value = config[key]
            name = value.get("content") if isinstance(value, dict) else value
            if name is None:
                return []
            number = core.token_to_id(str(name))
            if number is None:
                raise FolderError(f"{folder}: its {key} is {name!r}, which is no token of its tokenizer")
            return [number]
    return None


def _ids_by_number(core: tokenizers.Tokenizer, folder: Path, key: str, *configs: dict[str, Any]) -> list[int]:
    """All ids under this key, single or in lists."""
    found: list[int] = []
    for config in configs:
        value = config.get(key)
        found += value if isinstance(value, list) else [] if value is None else [value]
    for number in found:
        if type(number) is not int or not 0 <= number < 1 << 32 or core.id_to_token(number) is None:
            raise FolderError(f"{folder}: its {key} is {number!r}, which is no token of its tokenizer")
    return found


def _chat_template(folder: Path, tokenizer_config: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise FolderError(f"{path}: is not UTF-8 ({error.reason} at byte {error.start}); copy it again") from error
    value = tokenizer_config.get("chat_template")
    if isinstance(value, list):  # several, by name
        named = (entry for entry in value if isinstance(entry, dict) and entry.get("name") == "default")
        value = next((entry.get("template") for entry in named), None)
    return value if isinstance(value, str) else None
