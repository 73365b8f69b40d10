"""What a model folder holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard import checkpoint, huggingface
from regard.files import MANIFEST, read_json, verify
from regard.huggingface.hub import find


def describe_folder(folder: Path) -> dict[str, Any]:
    """The facts of a folder, in the order a reader wants them; its files are verified where it has a manifest."""
    path = find(folder)
    if path.is_file():
        found = huggingface.load(path)
        return _facts(path, found.kind, found.task, found.model, {}, {path.name: {"size": path.stat().st_size}}, False)
    if huggingface.is_foreign(path):
        foreign = huggingface.load(path)
        kind, task, model = foreign.kind, foreign.task, foreign.model
        versions = {"transformers": read_json(path / checkpoint.CONFIG).get("transformers_version")}
    else:
        ours = checkpoint.load(path)
        kind, task, model = ours.kind, str(ours.task.get("name")), ours.model
        versions = read_json(path / checkpoint.CONFIG).get("versions", {})
    manifest = verify(path) if (path / MANIFEST).is_file() else None
    files = manifest or {file.name: {"size": file.stat().st_size} for file in sorted(path.iterdir()) if file.is_file()}
    return _facts(path, kind, task, model, versions, files, manifest is not None)


def _facts(
    path: Path, kind: str, task: str, model: Any, versions: dict[str, Any], files: Mapping[str, Any], verified: bool
) -> dict[str, Any]:
    return {
        "folder": str(path),
        "kind": kind,
        "task": task,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "model": model.config.model_dump(mode="json"),
        "versions": versions,
        "files": {name: entry["size"] for name, entry in files.items()},
        "verified": verified,
    }
