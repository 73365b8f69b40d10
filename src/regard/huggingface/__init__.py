"""Hugging Face folders: read as they are, and written so that `transformers` opens them.

One file a family, with a two-way table of names. Every weight of a folder is used, or an error names it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint import CONFIG
from regard.errors import ConfigError, FolderError
from regard.files import MANIFEST, read_json, verify
from regard.huggingface import marian
from regard.huggingface.folder import Loaded

# model_type in config.json -> the file that reads and writes it
FAMILIES = {"marian": marian}


def is_foreign(folder: Path) -> bool:
    """Whether a folder is Hugging Face's: its config.json has a model_type."""
    return (folder / CONFIG).is_file() and "model_type" in read_json(folder / CONFIG)


def load(folder: Path) -> Loaded:
    """Read a folder of one of the families; one that we exported is held against its manifest first."""
    if (folder / MANIFEST).is_file():
        verify(folder)
    config = read_json(folder / CONFIG)
    family = config["model_type"]
    if not isinstance(family, str) or family not in FAMILIES:
        raise FolderError(f"{folder / CONFIG}: model_type is {family!r}, wanted one of {', '.join(FAMILIES)}")
    return FAMILIES[family].load(folder, config)


def files(kind: str, model: Any, tokenizer: Any, **search: Any) -> Mapping[str, bytes]:
    """A model as the files of a Hugging Face folder; `search` is how it is searched: beams, length_penalty, longest."""
    for family in FAMILIES.values():
        if kind == family.KIND:
            return family.files(model, tokenizer, **search)
    raise ConfigError(f"a {kind} has no counterpart at Hugging Face that regard writes; wanted {marian.KIND}")
