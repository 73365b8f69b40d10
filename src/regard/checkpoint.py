"""The model folder: its files, and how a model is saved and loaded.

    config.json             format, kind, config, task, versions
    model.safetensors       the weights
    tokenizer.json          the tokenizer
    tokenizer_config.json   of a language model: bos and eos tokens, the chat template
    card.md                 the model card: data, command, seed, metrics, settings
    NAME.py                 of a model from a user's file: a copy of that file; config.json names its SHA-256
    MANIFEST.json           SHA-256 and size of every file, written last

A checkpoint of a run is the same with optimizer.safetensors and training.json. No pickle is written or read.
"""

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from pydantic import ValidationError
from torch import Tensor, nn

import regard
from regard import extensions, renamed
from regard.errors import FolderError
from regard.files import encode_json, read_json, verify
from regard.models import MODELS, is_model, model_class
from regard.size_limits import check_sizes

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
CARD = "card.md"
FORMAT = 2  # version of config.json and run.json; version 1 has no such key and other names (regard.renamed)
SETTINGS = "run.json"  # in the folder of a run: its recipe, data and settings


@dataclass(frozen=True)
class ModelFolder:
    """A verified and loaded model folder. The task reads the tokenizer, because its type depends on the task."""

    folder: Path
    kind: str
    task: dict[str, Any]
    model: nn.Module

    @property
    def tokenizer(self) -> Path:
        return self.folder / TOKENIZER


def model_files(
    kind: str,
    model: nn.Module,
    task: Mapping[str, Any],
    tokenizer: Mapping[str, bytes],
    card: str,
    weights: Mapping[str, Tensor] | None = None,
) -> dict[str, bytes]:
    """The files of a model folder, without the manifest; `tokenizer` has the files of the tokenizer.

    `weights`: if not those that the model has, for example of one that is sharded.
    """
    code = _code_of(model, task)
    config = {
        "format": FORMAT,
        "kind": kind,
        "model": model.config.model_dump(mode="json"),  # type: ignore[union-attr, operator]
        "task": dict(task),
        "versions": {
            "regard": regard.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            **extensions.versions("models", kind),
            **extensions.versions("tasks", str(task.get("name"))),
        },
    }
    if code:
        config[extensions.CODE] = {file.name: file.sha256 for file in code}
    return {
        CONFIG: encode_json(config),
        WEIGHTS: encode_tensors(model.state_dict() if weights is None else weights),
        **tokenizer,
        **{file.name: file.content for file in code},
        CARD: card.encode(),
    }


def _code_of(model: nn.Module, task: Mapping[str, Any]) -> list[extensions.CodeFile]:
    """The files of the user's that are needed to open this model again."""
    found = [extensions.file_of(type(model).__module__), extensions.file_named(str(task.get("name")))]
    return list({file.name: file for file in found if file is not None}.values())


def load(folder: Path) -> ModelFolder:
    """Verify a model folder and build its model, on the CPU and in evaluation mode."""
    manifest = verify(folder)
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if name not in manifest:
            raise FolderError(f"{folder}: the manifest does not list {name}; this is not a model folder")
    config = read_config(folder / CONFIG)
    extensions.require(folder, config)
    kind = config.get("kind")
    if not isinstance(kind, str) or not is_model(kind):
        raise FolderError(f"{folder / CONFIG}: kind is {kind!r}, wanted one of {', '.join(MODELS)}")
    check_sizes(config.get("model") or {}, folder / CONFIG, [folder / WEIGHTS])
    architecture = model_class(kind)
    try:
        model_config = architecture.config_class.model_validate_json(json.dumps(config.get("model")), strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, ("model", *problem["loc"])))
        raise FolderError(f"{folder / CONFIG}: {where}: {problem['msg']}") from error
    with torch.device("meta"):
        model = architecture(model_config)
    weights = read_tensors(folder / WEIGHTS)
    assign_weights(model, renamed.weights(kind, weights) if config["format"] == 1 else weights, str(folder / WEIGHTS))
    return ModelFolder(folder, kind, _task(config, folder), model.eval())


def read_config(path: Path) -> dict[str, Any]:
    """The config.json of a model folder under the present names; its "format" says which names the weights have."""
    config = read_json(path)
    version = config.setdefault("format", 1)
    if version not in (1, FORMAT):
        raise FolderError(f"{path}: format is {version!r}, this version reads 1 and {FORMAT}; upgrade regard")
    if version == 1:
        kind = config.get("kind")
        config["kind"] = renamed.KINDS.get(str(kind), kind)
        if isinstance(config.get("model"), dict):
            config["model"] = renamed.settings(config["model"], "model.")
        if isinstance(task := config.get("task"), dict):
            config["task"] = {renamed.TASK_KEYS.get(key, key): value for key, value in task.items()}
            config["task"]["name"] = renamed.TASKS.get(str(task.get("name")), task.get("name"))
    return config


def read_settings(path: Path) -> dict[str, Any]:
    """The run.json of a run under the present names."""
    found = read_json(path)
    return renamed.run(found) if found.get("format", 1) == 1 else found


def _task(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    task = config.get("task")
    if not isinstance(task, dict):
        raise FolderError(f"{folder / CONFIG}: task is {task!r}, wanted an object with a name")
    return task


def assign_weights(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Load weights into a model, which may be on the meta device. A missing, unused or wrong weight is an error."""
    wanted = model.state_dict()
    for name in wanted.keys() - weights.keys():
        raise FolderError(f"{where} has no weight {name}, which this model needs")
    for name in weights.keys() - wanted.keys():
        raise FolderError(f"{where} has a weight {name} that this model does not use")
    for name, weight in weights.items():
        if weight.shape != wanted[name].shape:
            raise FolderError(
                f"{where}: weight {name} has shape {tuple(weight.shape)}, wanted {tuple(wanted[name].shape)}"
            )
        dtype = torch.float32 if wanted[name].is_floating_point() else wanted[name].dtype  # counts stay integers
        if weight.dtype != dtype:
            raise FolderError(f"{where}: weight {name} is {weight.dtype}, wanted {dtype}")
    model.load_state_dict(dict(weights), assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def encode_tensors(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, metadata)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, copied: in the file they are not aligned, which slows matrix products."""
    try:
        return {name: tensor.clone() for name, tensor in safetensors.torch.load_file(path).items()}
    except (OSError, safetensors.SafetensorError) as error:
        raise FolderError(f"{path} cannot be read as safetensors: {error}") from error


def average(weights: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Checkpoint averaging: the mean of several sets of weights, summed in double precision."""
    total: dict[str, Tensor] = {}
    count = 0
    for one in weights:
        count += 1
        for name, weight in one.items():
            total[name] = total.get(name, torch.zeros_like(weight, dtype=torch.float64)) + weight.double()
    return {name: (weight / count).float() for name, weight in total.items()}
