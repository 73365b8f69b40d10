"""Pictures on disk as a model wants them: one array of pixels mapped into memory, however many there are.

A folder holds pixels.u1, the pixels (N, side, side, 3) of all pictures that could be read, and index.json with the
side, the number of pictures, which of them were bad and why, and a digest of the file. How a picture becomes pixels
is handed in: this file knows paths and arrays only.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.readers.captions import BadPicture
from regard.data.readers.pairs import BadLines
from regard.data.stores.cache import cached, content_key
from regard.data.stores.storage import DigestedFile, digest, mapped, new_folder, read_index, write_index
from regard.errors import DataError

WHAT = "prepared pictures"
PIXELS = "pixels.u1"
BYTE = np.dtype("|u1")
THREADS = min(4, os.cpu_count() or 1)  # few: each may hold the largest picture there is
BLOCK = 64  # pictures between two reports of progress, and no more of their bytes in memory than
BLOCK_BYTES = 64 << 20

Prepare = Callable[[Path], np.ndarray]  # a picture as (side, side, 3) of uint8; DataError if it is none
Progress = Callable[[int, int], None]  # so many of so many are done


class PreparedPictures:
    """Random access to pixels: `pictures[rows]` is (B, side, side, 3) of uint8, copied from the file.

    `places[row]` is the place that the row's picture had among the paths; `bad` has the reason for each place left out.
    """

    def __init__(self, pixels: np.ndarray, places: np.ndarray, bad: dict[int, str]) -> None:
        self._pixels = pixels
        self.places = places
        self.bad = bad
        self.side = pixels.shape[1]

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        return self._pixels[np.asarray(rows, np.int64)]

    @classmethod
    def build(
        cls, paths: Sequence[Path], prepare: Prepare, folder: Path, *, side: int, progress: Progress | None = None
    ) -> "PreparedPictures":
        """Prepare all pictures, several at the same time, into a new folder; it appears whole or not at all."""
        bad: list[tuple[int, str]] = []
        with new_folder(Path(folder)) as unfinished:
            _check_room(unfinished, len(paths) * side * side * 3)
            with closing(DigestedFile(unfinished / PIXELS)) as file:
                for place, pixels in enumerate(_prepared(paths, prepare, side, progress)):
                    if isinstance(pixels, str):
                        bad.append((place, pixels))
                    else:
                        assert (pixels.shape, pixels.dtype) == ((side, side, 3), BYTE), (pixels.shape, pixels.dtype)
                        file.write(pixels)
                files = {PIXELS: file.finish()}
            facts = {"side": side, "pictures": len(paths), "bad": bad, "dtype": BYTE.str, "files": files}
            write_index(unfinished, WHAT, facts)
            # Opened before it gets its name: after that another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "PreparedPictures":
        """Open a folder that `build` made. DataError: a file that is missing or not as it was written."""
        folder = Path(folder)
        index = read_index(folder, WHAT, _names)
        bad: dict[int, str] = dict(index["bad"])
        places = np.array([place for place in range(index["pictures"]) if place not in bad], np.int64)
        pixels = mapped(folder / PIXELS, BYTE).reshape(len(places), index["side"], index["side"], 3)
        return cls(pixels, places, bad)


def prepared_pictures(
    paths: Sequence[Path],
    prepare: Prepare,
    *,
    side: int,
    settings: Mapping[str, Any],
    report: BadLines,
    progress: Progress | None = None,
) -> PreparedPictures:
    """The pictures as pixels, from the cache if they were prepared before.

    The cache goes by the contents of the files, the side and `settings` (JSON values), which must tell all that
    `prepare` depends on. A picture for which `prepare` raises DataError is left out, and named in `report` each time;
    if none is left, that is a DataError.
    """
    with ThreadPoolExecutor(THREADS) as threads:
        contents = b"".join(threads.map(_digest, paths))
    key = content_key([], contents, {"what": WHAT, "side": side, **settings})
    found = cached(
        key,
        lambda folder: PreparedPictures.build(paths, prepare, folder, side=side, progress=progress),
        PreparedPictures.open,
    )
    for place, reason in found.bad.items():
        report.add(BadPicture(paths[place], 0, "bad picture", reason))
    if not len(found):
        first = f"; the first: {paths[0]}: {found.bad[0]}" if paths else ""
        raise DataError(f"none of {len(paths):,} pictures can be read{first}")
    return found


def _prepared(
    paths: Sequence[Path], prepare: Prepare, side: int, progress: Progress | None
) -> Iterator[np.ndarray | str]:
    """The pixels of each picture in turn, or the reason why it has none."""
    block = max(THREADS, min(BLOCK, BLOCK_BYTES // (side * side * 3)))
    with ThreadPoolExecutor(THREADS) as threads:
        for start in range(0, len(paths), block):
            several = paths[start : start + block]
            yield from threads.map(lambda path: _pixels_or_reason(path, prepare), several)
            if progress is not None:
                progress(start + len(several), len(paths))


def _pixels_or_reason(path: Path, prepare: Prepare) -> np.ndarray | str:
    try:
        return prepare(path)
    except DataError as error:
        return str(error).removeprefix(f"{path}: ")


def _digest(path: Path) -> bytes:
    try:
        return digest(path).digest()
    except (OSError, ValueError):
        return b"cannot be read"  # `prepare` says why


def _check_room(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise DataError(
            f"{folder.parent}: {free / 1e9:.1f} GB are free, the prepared pictures take {wanted / 1e9:.1f}; "
            "set REGARD_CACHE to a folder with more room, or make the side smaller"
        )


def _names(index: dict[str, Any]) -> set[str]:
    """The files that the index must list; ValueError if its numbers do not belong together."""
    places = {int(place) for place, _ in index["bad"]}
    good = len(set(range(index["pictures"])) - places)
    if good * index["side"] ** 2 * 3 != index["files"][PIXELS]["bytes"]:
        raise ValueError("the number of pictures and the number of bytes differ")
    return {PIXELS}
