"""What all families share: configs, safetensors files and shards, checks of weights, and the result."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, nn

from regard.checkpoint import CONFIG, read_tensors
from regard.errors import FolderError
from regard.files import read_json

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
GENERATION = "generation_config.json"


@dataclass(frozen=True)
class Pooling:
    """How the hidden states of a text become one vector; the defaults are those of sentence-transformers."""

    mode: Literal["mean", "cls", "max"] = "mean"  # over all tokens with special tokens; cls: the first token
    normalized: bool = False  # to length 1
    max_length: int | None = None  # tokens of a text, special tokens included; None: the context of the model


@dataclass(frozen=True)
class Loaded:
    """A model of a Hugging Face folder or GGUF file, as a model and a tokenizer of ours."""

    kind: str
    task: str
    model: nn.Module
    tokenizer: Any
    num_beams: int = 1  # how the folder wants its texts decoded
    length_penalty: float = 1.0
    max_new_tokens: int | None = None  # eos not counted
    force_eos: bool = False  # see generation.decode.Limits
    renormalize: bool = False
    pooling: Pooling = Pooling()  # of an encoder
    notes: list[str] = field(default_factory=list)  # settings of the folder that are ignored


class ForeignConfig(BaseModel):
    """The base of the config.json of a family: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @classmethod
    def read(cls, config: Mapping[str, Any], path: Path) -> Self:
        try:
            # Strict, as JSON: 2.0 and "2" are no sizes, so that none slips past the comparison with the weights.
            return cls.model_validate_json(json.dumps(config), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                raise FolderError(
                    f"{path} has a key {key!r} that regard does not know, so it cannot promise the same results; "
                    "remove it if it changes nothing"
                ) from error
            raise FolderError(f"{path}: {key} is {first['input']!r}: {first['msg']}") from error


def weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, from one file or several shards."""
    return {name: tensor for file in weight_files(folder) for name, tensor in read_tensors(file).items()}


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder: one, or the shards that its index names. FolderError: it has none."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        return [folder / Path(shard).name for shard in _shards(folder / INDEX)]
    if (folder / PICKLE).is_file():
        raise pickle_error(str(folder), folder, str(folder))
    raise FolderError(f"{folder} has no {WEIGHTS}; wanted a Hugging Face folder with its weights")


def _shards(index: Path) -> list[str]:
    found = read_json(index).get("weight_map")
    if not isinstance(found, dict) or not all(isinstance(file, str) for file in found.values()):
        raise FolderError(f"{index}: weight_map must map the names of weights to their shards; copy it again")
    return sorted(set(found.values()))


def pickle_error(name: str, folder: Path, output: str) -> FolderError:
    """The error for weights in a pickle, with the command that converts them.

    The command is meant to be pasted into a shell: what comes from the folder is quoted, or left out.
    """
    config = read_json(folder / CONFIG)
    architectures = config.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    architecture = named if isinstance(named, str) and named.isidentifier() and named.isascii() else "AutoModel"
    processor = "AutoImageProcessor" if config.get("model_type") == "vit" else "AutoTokenizer"
    return FolderError(
        f"{name} has its weights in {PICKLE}, a pickle, which can run code when it is read; convert it once, with "
        'transformers installed: python -c "import sys, transformers; a, b = sys.argv[1:]; '
        f"transformers.{architecture}.from_pretrained(a).save_pretrained(b); "
        f'transformers.{processor}.from_pretrained(a).save_pretrained(b)" {shlex.quote(name)} {shlex.quote(output)}'
    )


def take(
    found: dict[str, Tensor], names: Mapping[str, str], wanted: Mapping[str, Tensor], where: str
) -> dict[str, Tensor]:
    """Take the weights of a model out of `found`, by the names ours -> theirs: checked for their shape, as float32."""
    for ours, theirs in names.items():
        if theirs not in found:
            raise FolderError(f"{where} has no weight {theirs}, which this model needs")
        got, shape = tuple(found[theirs].shape), tuple(wanted[ours].shape)
        if got != shape:
            raise FolderError(f"{where}: weight {theirs} has shape {got}, wanted {shape}")
        if not found[theirs].is_floating_point():
            raise FolderError(f"{where}: weight {theirs} is {found[theirs].dtype}, wanted floating point")
    return {ours: found.pop(theirs).float() for ours, theirs in names.items()}


def drop_copies(found: dict[str, Tensor], copies: Mapping[str, Tensor], where: str) -> None:
    """Take copies of a weight out of `found`, such as tied embeddings saved twice. A copy that differs is an error."""
    for name, original in copies.items():
        copy = found.pop(name, None)
        if copy is None:
            continue
        same = copy.shape == original.shape and torch.allclose(copy.float(), original.to(copy.dtype).float(), atol=1e-6)
        if not same:
            raise FolderError(f"{where}: weight {name} differs from what config.json says it is")


def all_used(found: Mapping[str, Tensor], where: str) -> None:
    """FolderError names a weight that is left."""
    for name in found:
        raise FolderError(f"{where} has a weight {name} that this model does not use")
