"""The settings that a run wrote to run.json, and how files to be scored are read by them."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, SerializeAsAny

from regard.checkpoint import SETTINGS, read_settings
from regard.config import Config, override
from regard.data.readers.bad_rows import OnError
from regard.data.stores.cache import changed_since
from regard.errors import DataError


@dataclass(frozen=True)
class RunSettings:
    """What run.json says."""

    recipe: str
    data: list[Path]
    settings: dict[str, Any]
    contents: list[str | None]  # fingerprints of the data; empty in runs of earlier versions


def read_run_settings(folder: Path) -> RunSettings | None:
    """The settings of the run that made this folder; None: it is not the folder of a run."""
    path = folder / SETTINGS
    if not path.is_file():
        return None
    found = read_settings(path)
    if not {"recipe", "data", "settings"} <= found.keys():
        return None
    data = [Path(one) for one in found["data"]]
    return RunSettings(found["recipe"], data, found["settings"], found.get("contents", []))


def validation_of(folder: Path, wanted: str = "the data to score it on") -> RunSettings:
    """The settings of a run that is scored on its own validation data.

    DataError where that data cannot be found again; it tells the user to name `wanted`.
    """
    found = read_run_settings(folder)
    if found is None:
        raise DataError(f"{folder} has no {SETTINGS}, so it has no validation data; name {wanted}")
    for path in found.data:
        if not path.exists() and not glob.has_magic(str(path)):
            raise DataError(f"{path}, which {folder} was trained on, is gone; name {wanted}")
    if changed := changed_since(found.data, found.contents):
        raise DataError(
            f"{changed[0]} has changed since {folder} was trained on it, so its validation data cannot be found again; "
            f"name {wanted}"
        )
    return found


class ReadingConfig(Config):
    """How files to be scored are read; each format adds what it needs."""

    on_error: OnError = Field("skip", description="at a bad line or row: stop there, or skip it")


class TextReadingConfig(ReadingConfig):
    """How text to be scored is read."""

    field: str = Field("text", min_length=1, description="where a JSON line or a Parquet row has its text")


Reading = TypeVar("Reading", bound=ReadingConfig)


class _DataSection(Config):
    data: SerializeAsAny[ReadingConfig]


def override_reading(config: Reading, assignments: Sequence[str]) -> Reading:
    """The config with the user's assignments: data.label=stars."""
    return override(_DataSection(data=config), assignments).data  # type: ignore[return-value]
