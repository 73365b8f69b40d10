"""What the folders of all families share: their weights, their generation settings, and what comes out."""

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
    """How a text becomes one vector; the defaults are those of sentence-transformers for a folder that says nothing."""

    how: Literal["mean", "first", "max"] = "mean"  # of its words, symbols counted; first: that of the begin symbol
    normalized: bool = False  # to length 1
    longest: int | None = None  # pieces of a text at most, symbols counted; none: as many as the model reads


@dataclass(frozen=True)
class Loaded:
    """A foreign folder as parts of ours."""

    kind: str
    task: str
    model: nn.Module
    tokenizer: Any
    beams: int = 1  # the folder's own way to search
    length_penalty: float = 1.0
    longest: int | None = None  # tokens it writes at most, the end not counted
    closed: bool = False  # see generation.decode.Limits
    renormalized: bool = False
    pooling: Pooling = Pooling()  # of a model that reads
    notes: list[str] = field(default_factory=list)  # settings of the folder that are not followed


class ForeignConfig(BaseModel):
    """The base of a family's config.json: a key that the family does not have is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @classmethod
    def read(cls, config: Mapping[str, Any], path: Path) -> Self:
        try:
            return cls.model_validate(config)
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
    """All tensors of a folder, from one file or several."""
    if (folder / WEIGHTS).is_file():
        files = [WEIGHTS]
    elif (folder / INDEX).is_file():
        files = _shards(folder / INDEX)
    elif (folder / PICKLE).is_file():
        raise pickled(str(folder), folder, str(folder))
    else:
        raise FolderError(f"{folder} has no {WEIGHTS}; wanted a Hugging Face folder with its weights")
    return {name: tensor for file in files for name, tensor in read_tensors(folder / Path(file).name).items()}


def _shards(index: Path) -> list[str]:
    found = read_json(index).get("weight_map")
    if not isinstance(found, dict) or not all(isinstance(file, str) for file in found.values()):
        raise FolderError(f"{index}: weight_map is no table of weights and the names of their files; copy it again")
    return sorted(set(found.values()))


def pickled(name: str, folder: Path, output: str) -> FolderError:
    """What to say of weights in a pickle."""
    config = read_json(folder / CONFIG)
    found = config.get("architectures") or ["AutoModel"]
    beside = "AutoImageProcessor" if config.get("model_type") == "vit" else "AutoTokenizer"
    return FolderError(
        f"{name} has its weights in {PICKLE}, a pickle, which can run code when it is read; convert it once, with "
        'transformers installed: python -c "import sys, transformers; a, b = sys.argv[1:]; '
        f"transformers.{found[0]}.from_pretrained(a).save_pretrained(b); "
        f'transformers.{beside}.from_pretrained(a).save_pretrained(b)" {name} {output}'
    )


def take(
    found: dict[str, Tensor], names: Mapping[str, str], wanted: Mapping[str, Tensor], where: str
) -> dict[str, Tensor]:
    """Our weights by the table ours -> theirs, in single precision and of the wanted shapes; they leave `found`."""
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
    """Some files repeat a weight under a second name: it leaves `found` if it is the same, else it is an error."""
    for name, original in copies.items():
        copy = found.pop(name, None)
        if copy is None:
            continue
        same = copy.shape == original.shape and torch.allclose(copy.float(), original.to(copy.dtype).float(), atol=1e-6)
        if not same:
            raise FolderError(f"{where}: weight {name} differs from what config.json says it is")


def all_used(found: Mapping[str, Tensor], where: str) -> None:
    for name in found:
        raise FolderError(f"{where} has a weight {name} that this model has no place for")
