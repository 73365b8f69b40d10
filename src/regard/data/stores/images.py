"""A dataset of preprocessed images on disk: one memory-mapped array of pixels.

A folder holds pixels.u1, the pixels (N, side, side, 3) of all images that could be read, and index.json with the
side, the number of images, which of them were bad and why, and a digest of the file. How an image becomes pixels
is passed in: this file knows paths and arrays only.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import BadImage
from regard.data.stores.cache import cached, content_key
from regard.data.stores.memory_map import memory_map, read_index, write_index
from regard.errors import DataError
from regard.files import DigestedFile, create_folder, digest

WHAT = "preprocessed images"
PIXELS = "pixels.u1"
BYTE = np.dtype("|u1")
THREADS = min(4, os.cpu_count() or 1)  # few: each may hold the largest image we accept
BLOCK = 64  # images between two progress reports, at most
BLOCK_BYTES = 64 << 20  # of their pixels in memory, at most

Preprocess = Callable[[Path], np.ndarray]  # an image as (side, side, 3) of uint8; DataError if it cannot be read
Progress = Callable[[int, int], None]  # (done, total)


class ImageStore:
    """Random access to pixels: `images[rows]` is (B, side, side, 3) of uint8, copied from the memory map.

    `path_indices[row]` is the index of the row's image among the paths; `bad` maps the index of each image left out to
    the reason.
    """

    def __init__(self, pixels: np.ndarray, path_indices: np.ndarray, bad: dict[int, str]) -> None:
        self._pixels = pixels
        self.path_indices = path_indices
        self.bad = bad
        self.side = pixels.shape[1]

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        return self._pixels[np.asarray(rows, np.int64)]

    @classmethod
    def build(
        cls, paths: Sequence[Path], preprocess: Preprocess, folder: Path, *, side: int, progress: Progress | None = None
    ) -> "ImageStore":
        """Preprocess all images, several at a time, into a new folder, created atomically."""
        bad: list[tuple[int, str]] = []
        with create_folder(Path(folder)) as unfinished:
            _check_disk_space(unfinished, len(paths) * side * side * 3)
            with closing(DigestedFile(unfinished / PIXELS)) as file:
                for index, pixels in enumerate(_preprocessed(paths, preprocess, side, progress)):
                    if isinstance(pixels, str):
                        bad.append((index, pixels))
                    else:
                        assert (pixels.shape, pixels.dtype) == ((side, side, 3), BYTE), (pixels.shape, pixels.dtype)
                        file.write(pixels.tobytes())
                files = {PIXELS: file.finish()}
            facts = {"side": side, "pictures": len(paths), "bad": bad, "dtype": BYTE.str, "files": files}
            write_index(unfinished, WHAT, facts)
            # Open it before the rename: afterwards another process may replace the folder.
            return cls.open(unfinished)

    @classmethod
    def open(cls, folder: Path) -> "ImageStore":
        """Open a folder that `build` wrote. DataError: a file is missing, changed or damaged."""
        folder = Path(folder)
        index = read_index(folder, WHAT, _names)
        bad: dict[int, str] = dict(index["bad"])
        good = np.array([number for number in range(index["pictures"]) if number not in bad], np.int64)
        pixels = memory_map(folder / PIXELS, BYTE).reshape(len(good), index["side"], index["side"], 3)
        return cls(pixels, good, bad)


def prepare_images(
    paths: Sequence[Path],
    preprocess: Preprocess,
    *,
    side: int,
    settings: Mapping[str, Any],
    report: BadRows,
    progress: Progress | None = None,
) -> ImageStore:
    """The images as pixels, from the cache if they were preprocessed before.

    The cache key is the content of the files, the side and `settings` (JSON values), which must hold all that
    `preprocess` depends on. An image for which `preprocess` raises DataError is left out and named in `report`.
    DataError: no image could be read.
    """
    with ThreadPoolExecutor(THREADS) as threads:
        contents = b"".join(threads.map(_digest, paths))
    key = content_key([], contents, {"what": WHAT, "side": side, **settings})
    found = cached(
        key,
        lambda folder: ImageStore.build(paths, preprocess, folder, side=side, progress=progress),
        ImageStore.open,
    )
    for index, reason in found.bad.items():
        report.add(BadImage(paths[index], 0, "bad image", reason))
    if not len(found):
        first = f"; the first: {paths[0]}: {found.bad[0]}" if paths else ""
        raise DataError(f"none of {len(paths):,} images can be read{first}")
    return found


def _preprocessed(
    paths: Sequence[Path], preprocess: Preprocess, side: int, progress: Progress | None
) -> Iterator[np.ndarray | str]:
    """The pixels of each image in turn, or the reason why it cannot be read."""
    block = max(THREADS, min(BLOCK, BLOCK_BYTES // (side * side * 3)))
    with ThreadPoolExecutor(THREADS) as threads:
        for start in range(0, len(paths), block):
            several = paths[start : start + block]
            yield from threads.map(lambda path: _pixels_or_reason(path, preprocess), several)
            if progress is not None:
                progress(start + len(several), len(paths))


def _pixels_or_reason(path: Path, preprocess: Preprocess) -> np.ndarray | str:
    try:
        return preprocess(path)
    except DataError as error:
        return str(error).removeprefix(f"{path}: ")


def _digest(path: Path) -> bytes:
    try:
        return digest(path).digest()
    except (OSError, ValueError):
        return b"cannot be read"  # `preprocess` says why


def _check_disk_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise DataError(
            f"{folder.parent}: {free / 1e9:.1f} GB are free, the preprocessed images take {wanted / 1e9:.1f}; "
            "set REGARD_CACHE to a folder on a larger disk, or use smaller images"
        )


def _names(index: dict[str, Any]) -> set[str]:
    """The files that the index must list; ValueError if its counts contradict each other."""
    bad = {int(number) for number, _ in index["bad"]}
    good = len(set(range(index["pictures"])) - bad)
    if good * index["side"] ** 2 * 3 != index["files"][PIXELS]["bytes"]:
        raise ValueError("the number of images and the number of bytes differ")
    return {PIXELS}
