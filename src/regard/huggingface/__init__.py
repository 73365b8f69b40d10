"""Hugging Face folders, read and written; GGUF files (gguf.py, gguf_export.py).

One file a family, with a two-way table of weight names, a reader (`load`) and a writer (`files`). Every weight of a
folder is used, or an error names it. A new family is its file and one line in FAMILIES.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint import CONFIG
from regard.errors import ConfigError, FolderError
from regard.files import MANIFEST, read_json, verify
from regard.huggingface import gguf
from regard.huggingface.folder import Loaded, weight_files
from regard.size_limits import check_sizes

# model_type in config.json -> the module that reads and writes such folders
FAMILIES = {
    "marian": "regard.huggingface.marian",
    "t5": "regard.huggingface.t5",
    "gpt2": "regard.huggingface.gpt2",
    "llama": "regard.huggingface.llama",
    "qwen2": "regard.huggingface.llama",
    "bert": "regard.huggingface.bert",
    "vit": "regard.huggingface.vit",
}


def is_foreign(path: Path) -> bool:
    """Whether a path is a Hugging Face folder (config.json has a model_type) or a GGUF file, not a folder of regard."""
    if (path / CONFIG).is_file():
        return "model_type" in read_json(path / CONFIG)
    return gguf.is_gguf(path)


def load(path: Path, *, packed: bool = False) -> Loaded:
    """Read a GGUF file, or a folder of one of the families; a folder that regard exported is verified first.

    `packed` keeps the quantized blocks of a GGUF file.
    """
    if path.is_file():
        return gguf.load(path, packed=packed)
    if (path / MANIFEST).is_file():
        verify(path)
    config = read_json(path / CONFIG)
    family = config["model_type"]
    if not isinstance(family, str) or family not in FAMILIES:
        raise FolderError(f"{path / CONFIG}: model_type is {family!r}, wanted one of {', '.join(FAMILIES)}")
    check_sizes(config, path / CONFIG, weight_files(path))
    return importlib.import_module(FAMILIES[family]).load(path, config)


def files(kind: str, model: Any, tokenizer: Any, **settings: Any) -> Mapping[str, bytes]:
    """A model as the files of a Hugging Face folder.

    `settings` say how a translator is searched where nobody says otherwise (beams, length_penalty, longest, closed,
    renormalized), or how an encoder makes a vector of a text (pooling). Other models have none.
    """
    writers = {kind: family for family in map(importlib.import_module, FAMILIES.values()) for kind in family.KINDS}
    if kind not in writers:
        raise ConfigError(
            f"a {kind} has no counterpart at Hugging Face that regard writes; wanted one of {', '.join(writers)}"
        )
    return writers[kind].files(model, tokenizer, **settings)
