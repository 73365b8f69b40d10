"""What a run wrote down of itself: the recipe, its data, its settings; and how files to be scored are read by them."""

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


class Reading(Config):
    """How files to be scored are read; each kind of file adds what it needs."""

    on_error: OnError = Field("skip", description="at a bad line or row: stop there, or skip it")


Some = TypeVar("Some", bound=Reading)


@dataclass(frozen=True)
class RunSettings:
    recipe: str
    data: list[Path]
    settings: dict[str, Any]
    contents: list[str | None]  # the fingerprints of the data; none in runs of before


def settings_of(folder: Path) -> RunSettings | None:
    """None: the folder is no run's."""
    path = folder / SETTINGS
    if not path.is_file():
        return None
    found = read_settings(path)
    if not {"recipe", "data", "settings"} <= found.keys():
        return None
    data = [Path(one) for one in found["data"]]
    return RunSettings(found["recipe"], data, found["settings"], found.get("contents", []))


def held_out_of(folder: Path, wanted: str = "the data to score it on") -> RunSettings:
    """The same of a run that is to be measured on what it held out; DataError, which asks for what is wanted else."""
    found = settings_of(folder)
    if found is None:
        raise DataError(f"{folder} has no {SETTINGS}, so nothing was held out from it; name {wanted}")
    for path in found.data:
        if not path.exists() and not glob.has_magic(str(path)):
            raise DataError(f"{path}, which {folder} was trained on, is not there any more; name {wanted}")
    if changed := changed_since(found.data, found.contents):
        raise DataError(
            f"{changed[0]} has changed since {folder} was trained on it, so what was held out is not known any more; "
            f"name {wanted}"
        )
    return found


class _Told(Config):
    data: SerializeAsAny[Reading]


def told(reading: Some, assignments: Sequence[str]) -> Some:
    """How files are read, with what the user says of it: data.label=stars."""
    return override(_Told(data=reading), assignments).data  # type: ignore[return-value]
