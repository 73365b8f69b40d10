"""Describe a model folder: kind, task, size, config, files."""

from pathlib import Path
from typing import Any

from regard import checkpoint, extensions, huggingface
from regard.files import MANIFEST, read_json, verify
from regard.huggingface.folder import Loaded
from regard.huggingface.hub import find


def describe_folder(folder: Path) -> dict[str, Any]:
    """What `regard info` shows; the files are verified where the folder has a manifest."""
    path = find(folder)
    config = read_json(path / checkpoint.CONFIG) if (path / checkpoint.CONFIG).is_file() else {}
    if not extensions.has_run(path, config):
        return _describe_unrun(path, config)
    found: Loaded | checkpoint.ModelFolder
    if foreign := path.is_file() or huggingface.is_foreign(path):
        found = huggingface.load(path)
    else:
        found = checkpoint.load(path)
    manifest = verify(path) if (path / MANIFEST).is_file() else None
    sizes = {name: entry["size"] for name, entry in manifest.items()} if manifest else _sizes(path)
    versions = {"transformers": config.get("transformers_version")} if foreign else config.get("versions", {})
    return {
        "folder": str(path),
        "kind": found.kind,
        "task": found.task if isinstance(found.task, str) else str(found.task.get("name")),
        "parameters": sum(parameter.numel() for parameter in found.model.parameters()),
        "model": found.model.config.model_dump(mode="json"),  # type: ignore[union-attr, operator]
        **({extensions.CODE: config[extensions.CODE]} if extensions.CODE in config else {}),
        "versions": versions if config else {},
        "files": sizes,
        "verified": manifest is not None,
    }


def _describe_unrun(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The same of a model whose code has not been run: what its files say, without building it."""
    manifest = verify(path)
    task = config.get("task")
    return {
        "folder": str(path),
        "kind": str(config.get("kind")),
        "task": str(task.get("name") if isinstance(task, dict) else task),
        "parameters": sum(weight.numel() for weight in checkpoint.read_tensors(path / checkpoint.WEIGHTS).values()),
        "model": config.get("model", {}),
        extensions.CODE: config[extensions.CODE],
        "versions": config.get("versions", {}),
        "files": {name: entry["size"] for name, entry in manifest.items()},
        "verified": True,
    }


def _sizes(path: Path) -> dict[str, int]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.stat().st_size for file in files if file.is_file()}
