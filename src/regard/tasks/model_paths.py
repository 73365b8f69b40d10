"""Find a model; or say what a path is instead: missing, an unfinished run, a config.json that says too little."""

from pathlib import Path
from typing import Any

from regard.checkpoint import CONFIG, SETTINGS
from regard.errors import FolderError
from regard.files import MANIFEST, read_json
from regard.huggingface import FAMILIES
from regard.huggingface.hub import find

WANTED = (
    "wanted a model folder, as `regard train … -o FOLDER` makes it, a .gguf file, or a name on the Hugging Face hub"
)


def find_model(folder: str | Path) -> Path:
    """The path of a model, a name on the hub downloaded. FolderError says what the path is, if it is no model."""
    path = find(folder)
    if not path.exists():
        raise FolderError(f"there is no folder or file {folder}; {WANTED}")
    if path.is_dir() and not (path / MANIFEST).is_file():
        _check_folder(path)
    return path


def newest_checkpoint(run: Path) -> Path | None:
    """The newest complete checkpoint of a run's folder."""
    found = (path for path in run.glob("checkpoints/step-*") if (path / MANIFEST).is_file())
    steps = {int(path.name.removeprefix("step-")): path for path in found if path.name[5:].isdecimal()}
    return steps[max(steps)] if steps else None


def _check_folder(path: Path) -> None:
    """FolderError for a folder without a manifest that is no Hugging Face folder either."""
    if (path / SETTINGS).is_file() or (path / "checkpoints").is_dir():
        newest = newest_checkpoint(path)
        how = f"or take its newest checkpoint: {newest}" if newest else "it has no checkpoint yet"
        raise FolderError(f"{path} is a run that has not finished; the same `regard train` resumes it, {how}")
    if not (path / CONFIG).is_file():
        raise FolderError(f"{path} has no {CONFIG}, so it is no model; {WANTED}")
    config = read_json(path / CONFIG)
    if "model_type" in config or "kind" in config:
        return
    families = ", ".join(FAMILIES)
    guess = _family_of(config)
    if guess is not None:
        what = f'its architectures say {config["architectures"][0]}: add "model_type": "{guess}"'
    else:
        what = f"add it, one of {families}"
    missing = "model_type" if "architectures" in config else "model_type and no architectures"
    raise FolderError(f"{path / CONFIG} has no {missing}, so it does not say what model this is; {what}")


def _family_of(config: dict[str, Any]) -> str | None:
    """The family that the name of an architecture begins with."""
    named = config.get("architectures")
    first = named[0].casefold() if isinstance(named, list) and named and isinstance(named[0], str) else ""
    return next((family for family in FAMILIES if first.startswith(family)), None)
