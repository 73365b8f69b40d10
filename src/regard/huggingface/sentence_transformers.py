"""sentence-transformers folders: a Hugging Face folder with files that say how a text becomes a vector.

modules.json                        the modules in order: Transformer, Pooling, and sometimes Normalize
1_Pooling/config.json               mean, cls or max
sentence_bert_config.json           the maximum number of tokens
config_sentence_transformers.json   prompts, which are ignored
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from regard.errors import FolderError
from regard.files import encode_json, read_json
from regard.huggingface.folder import ForeignConfig, Pooling

MODULES = "modules.json"
LENGTH = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
MODELS = "sentence_transformers.models"
STEPS = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
MODES: dict[str, Literal["mean", "cls", "max"]] = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
NEW_MODES: dict[str, Literal["mean", "cls", "max"]] = {"mean": "mean", "cls": "cls", "max": "max"}


class PoolingConfig(ForeignConfig):
    """config.json of the Pooling module."""

    word_embedding_dimension: int | None = None
    embedding_dimension: int | None = None  # the newer name
    pooling_mode: str | None = None  # the newer form of all that follow
    pooling_mode_cls_token: bool = False
    pooling_mode_mean_tokens: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_sqrt_len_tokens: bool = False
    pooling_mode_weightedmean_tokens: bool = False
    pooling_mode_lasttoken: bool = False
    include_prompt: bool = True


class LengthConfig(ForeignConfig):
    """sentence_bert_config.json."""

    max_seq_length: int | None = Field(None, ge=3)
    do_lower_case: Literal[False] = False  # before the tokenizer, which lowercases itself


def read_pooling(folder: Path) -> tuple[Pooling, list[str]]:
    """The pooling of a folder, and notes on settings that are ignored."""
    if not (folder / MODULES).is_file():
        return Pooling(), []
    steps = _steps(folder / MODULES)
    names = list(steps)
    if names not in STEPS or steps["Transformer"]:
        raise FolderError(
            f"{folder / MODULES}: its modules are {', '.join(names)}, wanted Transformer (in the folder itself), "
            "Pooling and perhaps Normalize; regard has no other"
        )
    length = folder / LENGTH
    max_length = LengthConfig.read(read_json(length), length).max_seq_length if length.is_file() else None
    return Pooling(_mode(folder / steps["Pooling"] / "config.json"), "Normalize" in steps, max_length), _notes(folder)


def pooling_files(pooling: Pooling, width: int) -> dict[str, bytes]:
    """The files that `read_pooling` reads."""
    steps = STEPS[pooling.normalized]
    modules = [
        {"idx": number, "name": str(number), "path": f"{number}_{step}" if number else "", "type": f"{MODELS}.{step}"}
        for number, step in enumerate(steps)
    ]
    ways = {f"pooling_mode_{theirs}": ours == pooling.mode for theirs, ours in MODES.items()}
    return {
        MODULES: encode_json(modules),
        "1_Pooling/config.json": encode_json({"word_embedding_dimension": width, **ways}),
        LENGTH: encode_json({"max_seq_length": pooling.max_length, "do_lower_case": False}),
    }


def _steps(path: Path) -> dict[str, str]:
    """The name of each module and its folder."""
    try:
        found = json.loads(path.read_bytes())
        return {str(step["type"]).rsplit(".", 1)[-1]: str(step["path"]) for step in found}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FolderError(f"{path} is not a list of modules, each with a type and a path: {error}") from error


def _mode(path: Path) -> Literal["mean", "cls", "max"]:
    theirs = PoolingConfig.read(read_json(path), path)
    if theirs.pooling_mode is not None:
        said, ways = [theirs.pooling_mode], NEW_MODES
    else:
        marked = theirs.model_dump(include={name for name in PoolingConfig.model_fields if "_mode_" in name})
        said, ways = [name.removeprefix("pooling_mode_") for name, on in marked.items() if on], MODES
    if len(said) != 1 or said[0] not in ways:
        raise FolderError(f"{path}: it pools by {' and '.join(said) or 'nothing'}, wanted one of {', '.join(ways)}")
    return ways[said[0]]


def _notes(folder: Path) -> list[str]:
    facts: dict[str, Any] = read_json(folder / PROMPTS) if (folder / PROMPTS).is_file() else {}
    name = facts.get("default_prompt_name")
    return [] if name is None else [f"{folder / PROMPTS}: default_prompt_name is {name!r}: ignored by default"]
