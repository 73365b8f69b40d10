"""The models of a server: a table of names, fixed at the start. A request names a model, never a path."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import ConfigError, FolderError
from regard.huggingface.hub import find
from regard.tasks.base import Task

# (path) -> the task and its pipeline
OpenModel = Callable[[Path], tuple[Task, Any]]


@dataclass(frozen=True)
class ServedModel:
    """An opened model by its name."""

    name: str
    task: Task
    pipeline: Any

    @property
    def context(self) -> int | None:
        """The most tokens that it attends to; None where there is no such bound."""
        return getattr(self.pipeline.model.config, "context", None)


class ModelTable:
    """Name -> model, in the order of the command line; the models are opened by `load`."""

    def __init__(self, paths: Sequence[Path], open_model: OpenModel) -> None:
        self._paths = named(paths)
        self._open = open_model
        self._opened: dict[str, ServedModel] = {}

    @classmethod
    def of(cls, pipelines: dict[str, tuple[Task, Any]]) -> "ModelTable":
        """A table of models that are open already."""
        table = cls([], lambda path: (_ for _ in ()).throw(FolderError(f"there is no {path}")))
        table._opened = {name: ServedModel(name, *opened) for name, opened in pipelines.items()}
        table._paths = dict.fromkeys(pipelines, Path())
        return table

    @property
    def names(self) -> list[str]:
        return list(self._paths)

    @property
    def is_loaded(self) -> bool:
        return len(self._opened) == len(self._paths)

    def load(self) -> None:
        """Open all models, one after the other."""
        for name, path in self._paths.items():
            if name not in self._opened:
                self._opened[name] = ServedModel(name, *self._open(path))

    def get(self, name: str) -> ServedModel | None:
        """The model of this name; None where there is none, or it is not open yet."""
        return self._opened.get(name)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self._opened.values()))


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """A name for each path: its last part, without .gguf; a second one of the same name gets "-2"."""
    found: dict[str, Path] = {}
    for given in paths:
        path = find(given)
        if not path.exists():
            raise FolderError(f"there is no folder or file {given}; wanted a model folder or a .gguf file")
        name = name_of(given)
        if path in found.values():
            raise ConfigError(f"{given} is given twice; name each model once")
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}-{number}"
        found[unique] = path
    return found


def name_of(path: Path) -> str:
    """The name of a model in requests: letters, digits, ".", "_" and "-"."""
    last = path.absolute().name.removesuffix(".gguf")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.") or "model"
