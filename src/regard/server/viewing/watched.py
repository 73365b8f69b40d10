"""Folders that the page watches: runs in progress, and reports of `regard compare`."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.errors import FolderError
from regard.files import MANIFEST
from regard.training.log import METRICS
from regard.training.run_folder import RunFolder

MAX_LINES = 20_000  # of the metrics; older ones of a longer run are thinned out
REPORT = "ladder.json"


@dataclass(frozen=True)
class Watched:
    """A folder by its name on the page."""

    name: str
    path: Path
    kind: Literal["run", "report"]


def watched_folder(path: Path) -> Watched | None:
    """A folder with metrics of a run, or with a report; None: it has neither."""
    if (path / REPORT).is_file():
        return Watched(path.resolve().name, path, "report")
    if (path / METRICS).is_file():
        return Watched(path.resolve().name, path, "run")
    return None


def read_run(run: Watched) -> dict[str, Any]:
    """The metrics so far, and the checkpoints; a last line that is half written is left out."""
    try:
        text = (run.path / METRICS).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FolderError(f"the metrics of {run.name} cannot be read: {error.strerror}") from error
    lines = text.split("\n")[:-1]
    every = max(1, -(-len(lines) // MAX_LINES))
    found = []
    for line in lines[::every]:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            found.append({name: value for name, value in row.items() if _is_plain(value)})
    folders = RunFolder(run.path).folders()
    return {"kind": "run", "name": run.name, "metrics": found, "checkpoints": [one.name for one in folders]}


def read_report(report: Watched) -> dict[str, Any]:
    """The rows of a comparison as they stand in its folder."""
    try:
        found = json.loads((report.path / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(f"{report.name}: {REPORT} cannot be read; run `regard compare` again") from error
    return {"kind": "report", "name": report.name, **found}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def is_model(path: Path) -> bool:
    """Whether a watched folder can be opened as a model too: its run is finished."""
    return (path / MANIFEST).is_file()
