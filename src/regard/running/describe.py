"""What a model folder holds."""

from pathlib import Path
from typing import Any

from regard import checkpoint
from regard.files import read_json, verify


def describe_folder(folder: Path) -> dict[str, Any]:
    """The facts of a verified folder, in the order a reader wants them."""
    found = checkpoint.load(folder)
    manifest = verify(folder)
    config = read_json(folder / checkpoint.CONFIG)
    return {
        "folder": str(folder),
        "kind": found.kind,
        "task": found.task.get("name"),
        "parameters": sum(parameter.numel() for parameter in found.model.parameters()),
        "model": config["model"],
        "versions": config.get("versions", {}),
        "files": {name: entry["size"] for name, entry in manifest.items()},
        "verified": True,
    }
