"""What the folders of all families share: their weights, their generation settings, and what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, nn

from regard.checkpoint import read_tensors
from regard.errors import FolderError
from regard.files import read_json

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
GENERATION = "generation_config.json"


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
    closed: bool = False  # a text that reaches the limit is given the end for nothing
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
    """All tensors of a folder, in single precision, from one file or several."""
    if (folder / WEIGHTS).is_file():
        files = [WEIGHTS]
    elif (folder / INDEX).is_file():
        files = sorted(set(read_json(folder / INDEX).get("weight_map", {}).values()))
    elif (folder / PICKLE).is_file():
        raise FolderError(
            f"{folder} has its weights in {PICKLE}, a pickle, which can run code when it is read; convert it once: "
            'python -c "import transformers as t, sys; t.AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1])'
            f'.save_pretrained(sys.argv[1])" {folder}'
        )
    else:
        raise FolderError(f"{folder} has no {WEIGHTS}; wanted a Hugging Face folder with its weights")
    found = {name: tensor for file in files for name, tensor in read_tensors(folder / Path(file).name).items()}
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in found.items()}


def take(found: dict[str, Tensor], names: Mapping[str, str], where: str) -> dict[str, Tensor]:
    """Our weights by the table ours -> theirs; those taken leave `found`."""
    for theirs in names.values():
        if theirs not in found:
            raise FolderError(f"{where} has no weight {theirs}, which this model needs")
    return {ours: found.pop(theirs) for ours, theirs in names.items()}


def drop_copies(found: dict[str, Tensor], copies: Mapping[str, Tensor], where: str) -> None:
    """Some files repeat a weight under a second name: it leaves `found` if it is the same, else it is an error."""
    for name, original in copies.items():
        copy = found.pop(name, None)
        if copy is not None and not (copy.shape == original.shape and torch.allclose(copy, original, atol=1e-6)):
            raise FolderError(f"{where}: weight {name} differs from what config.json says it is")


def all_used(found: Mapping[str, Tensor], where: str) -> None:
    for name in found:
        raise FolderError(f"{where} has a weight {name} that this model has no place for")
