"""Folders of numpy arrays, memory-mapped: an index.json with the counts, and a digest of each file."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.files import check_digest

LAYOUT = 2  # raised when the layout of the folders changes; older cache entries are then not found
OFFSET = np.dtype("<i8")


def id_dtype(vocab_size: int) -> np.dtype:
    """Two bytes a token id for vocabularies of up to 65,536, else four."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def write_index(folder: Path, what: str, index: dict[str, Any]) -> None:
    """Write the index.json of a folder of `what`; `index["files"]` has what `DigestedFile.finish` returned."""
    with (folder / "index.json").open("w", encoding="utf-8") as file:
        json.dump({"layout": LAYOUT, "what": what, **index}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def read_index(folder: Path, what: str, names: Callable[[dict[str, Any]], set[str]]) -> dict[str, Any]:
    """Read the index.json of a folder of `what` and verify every file; `names` are the files it must list.

    DataError: a file is missing, changed or damaged.
    """
    path = folder / "index.json"
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = index["layout"] == LAYOUT and index["what"] == what and np.dtype(index["dtype"])
        reason = "" if known and index["files"].keys() == names(index) else "not the index of this version"
    except FileNotFoundError:
        reason = "is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        reason = " ".join(str(error).split())
    if reason:
        raise DataError(f"{path}: cannot be read as the index of {what} ({reason}); create the folder again")
    for name, expected in index["files"].items():
        check_digest(folder / name, expected)
    return index


def memory_map(path: Path, dtype: np.dtype) -> np.ndarray:
    """The array in a file, memory-mapped and read-only."""
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype)
    # A plain array over the map: slicing np.memmap itself is several times slower.
    return np.asarray(np.memmap(path, dtype, mode="r"))
