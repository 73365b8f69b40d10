"""What a model folder holds."""

from pathlib import Path
from typing import Any

from regard import checkpoint, huggingface
from regard.files import MANIFEST, read_json, verify
from regard.huggingface.hub import find


def describe_folder(folder: Path) -> dict[str, Any]:
    """The facts of a folder, in the order a reader wants them; its files are verified where it has a manifest."""
    path = find(folder)
    if huggingface.is_foreign(path):
        foreign = huggingface.load(path)
        kind, task, model = foreign.kind, foreign.task, foreign.model
        versions = {"transformers": read_json(path / checkpoint.CONFIG).get("transformers_version")}
    else:
        found = checkpoint.load(path)
        kind, task, model = found.kind, str(found.task.get("name")), found.model
        versions = read_json(path / checkpoint.CONFIG).get("versions", {})
    manifest = verify(path) if (path / MANIFEST).is_file() else None
    files = manifest or {file.name: {"size": file.stat().st_size} for file in sorted(path.iterdir()) if file.is_file()}
    return {
        "folder": str(path),
        "kind": kind,
        "task": task,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "model": model.config.model_dump(mode="json"),  # type: ignore[union-attr, operator]
        "versions": versions,
        "files": {name: entry["size"] for name, entry in files.items()},
        "verified": manifest is not None,
    }
