"""The tokenizer of a Hugging Face folder: its file, and what begins and ends a text, from wherever it is said."""

import json
from pathlib import Path
from typing import Any

import tokenizers
from regard.errors import FolderError
from regard.files import read_json
from regard.tokenizers.characters import END
from tokenizers import decoders, models, pre_tokenizers

Found = tuple[tokenizers.Tokenizer, int | None, list[int], str | None]


def read_folder(folder: Path) -> Found:
    """Tokenizer, begin, ends and chat template.

    Names go before numbers: tokenizer_config.json and special_tokens_map.json, then generation_config.json and
    config.json. Generation may end at more tokens than the one that is named: they come behind it.
    """
    folder = Path(folder)
    core = _core(folder)
    named, mapped, generation, config = (
        _facts(folder / f"{name}.json")
        for name in ("tokenizer_config", "special_tokens_map", "generation_config", "config")
    )
    begins = _by_name(core, folder, "bos_token", named, mapped)
    if begins is None:
        begins = _by_number(core, folder, "bos_token_id", generation, config)
    ends = _by_name(core, folder, "eos_token", named, mapped) or []
    ends += _by_number(core, folder, "eos_token_id", named, generation, config)
    return core, begins[0] if begins else None, ends, _template(folder, named)


def _core(folder: Path) -> tokenizers.Tokenizer:
    whole, vocabulary, merges = (folder / name for name in ("tokenizer.json", "vocab.json", "merges.txt"))
    if not whole.is_file() and not (vocabulary.is_file() and merges.is_file()):
        raise FolderError(f"{folder}: has no tokenizer; wanted tokenizer.json, or vocab.json and merges.txt")
    try:
        if whole.is_file():
            return tokenizers.Tokenizer.from_str(whole.read_text(encoding="utf-8"))
        return _gpt2(json.loads(vocabulary.read_bytes()), merges.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception for a file it cannot read
        name = whole if whole.is_file() else f"{vocabulary} and merges.txt"
        reason = " ".join(str(error).split())
        raise FolderError(f"{name}: cannot be read as a tokenizer ({reason}); copy it again") from error


def _gpt2(vocabulary: dict[str, int], merges: str) -> tokenizers.Tokenizer:
    lines = [line.split(" ") for line in merges.split("\n") if line and not line.startswith("#version")]
    core = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[(left, right) for left, right in lines]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    if END in vocabulary:
        core.add_special_tokens([END])
    return core


def _facts(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _by_name(core: tokenizers.Tokenizer, folder: Path, key: str, *places: dict[str, Any]) -> list[int] | None:
    """The token of the first place that has the key; none of them: None, and none wanted: an empty list."""
    for place in places:
        if key in place:
            said = place[key]
            name = said.get("content") if isinstance(said, dict) else said
            if name is None:
                return []
            number = core.token_to_id(str(name))
            if number is None:
                raise FolderError(f"{folder}: its {key} is {name!r}, which is no token of its tokenizer")
            return [number]
    return None


def _by_number(core: tokenizers.Tokenizer, folder: Path, key: str, *places: dict[str, Any]) -> list[int]:
    """All numbers that stand under this key, alone or as lists."""
    found: list[int] = []
    for place in places:
        said = place.get(key)
        found += said if isinstance(said, list) else [] if said is None else [said]
    for number in found:
        if type(number) is not int or not 0 <= number < 1 << 32 or core.id_to_token(number) is None:
            raise FolderError(f"{folder}: its {key} is {number!r}, which is no token of its tokenizer")
    return found


def _template(folder: Path, named: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    said = named.get("chat_template")
    if isinstance(said, list):  # several by name
        said = {entry["name"]: entry["template"] for entry in said}.get("default")
    return said if isinstance(said, str) else None
