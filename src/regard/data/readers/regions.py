"""Read image regions of an object detector: features and boxes in a .npz or .safetensors file."""

import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import safetensors
from numpy.lib import format as npy

from regard.data.regions import UNKNOWN_CLASS, WHOLE_IMAGE, ImageRegions, Regions, normalize_boxes
from regard.errors import DataError

KEYS = ("features", "boxes", "classes", "names")  # that a file may have
MAX_GROWTH = 200  # how many times its size an archive may take when decompressed
MAX_CLASS = 2**31
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # by version


@dataclass(frozen=True)
class RegionFile:
    """The content of a file of regions."""

    regions: Regions
    names: list[str]  # of the images; their numbers from 0 if the file has none


def read_regions(path: Path, *, features: int | None = None) -> RegionFile:
    """Read the regions of a .npz or .safetensors file.

    `features` (N, R, F) come from any detector; `boxes` (N, R, 4) are fractions of the image from 0 to 1, all zeros
    after the last region of an image with fewer than R. Optional: `classes` (N, R) from 0, and `names` (N,) of the
    images (in safetensors as JSON in the metadata). An image whose first region is not the whole image gets one with
    the mean of its features (Lu 2019, 3.1). DataError: the file is not like this.
    """
    arrays = _arrays(Path(path))
    values, boxes = _checked_boxes(path, arrays)
    if features is not None and values.shape[2] != features:
        raise DataError(f"{path}: its regions have {values.shape[2]} features, the model reads {features}")
    classes = _checked_classes(path, arrays, values.shape[:2])
    names = arrays.get("names", np.arange(len(values)).astype(str))
    if names.shape != (len(values),):
        raise DataError(f"{path}: names are {names.dtype} {names.shape}, wanted one for each of {len(values)} images")
    real = np.asarray(boxes.any(-1))
    rows = range(len(values))
    found = [
        _with_whole_image(
            values[row][real[row]], boxes[row][real[row]], None if classes is None else classes[row][real[row]]
        )
        for row in rows
    ]
    return RegionFile(Regions(found), names.tolist())


def _arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise DataError(f"{path}: no such file, wanted a .npz or .safetensors file of regions")
    if path.suffix not in (".npz", ".safetensors"):
        raise DataError(f"{path}: got the ending {path.suffix!r}, wanted .npz or .safetensors")
    try:
        found = _npz_arrays(path) if path.suffix == ".npz" else _safetensors_arrays(path)
        if "names" in found:
            found["names"] = found["names"].astype(str)
            found["names"].tolist()  # raises for what are no characters
    except Exception as error:  # damaged bytes may raise anything in the libraries
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise DataError(f"{path}: cannot be read as {path.suffix} ({reason})") from error
    if unknown := sorted(found.keys() - set(KEYS)):
        raise DataError(f"{path}: has {', '.join(unknown)}, wanted features, boxes and perhaps classes and names only")
    if missing := [name for name in ("features", "boxes") if name not in found]:
        raise DataError(f"{path}: has no {' and no '.join(missing)}; wanted features (N, R, F) and boxes (N, R, 4)")
    return found


def _npz_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive, whose sizes are checked before one is read."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > MAX_GROWTH * path.stat().st_size:
            raise ValueError(f"it would take {total:,} bytes, more than {MAX_GROWTH} times its size")
        for member in members:
            with archive.open(member) as file:
                _check_array_size(member, file)
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _check_array_size(member: zipfile.ZipInfo, file: IO[bytes]) -> None:
    """ValueError unless the header of an array describes as many bytes as follow it."""
    if not member.filename.endswith(".npy"):
        raise ValueError(f"{member.filename} is no array")
    read_header = HEADERS.get(npy.read_magic(file))
    if read_header is None:
        raise ValueError(f"{member.filename} is of a format that regard does not know")
    shape, _, kind = read_header(file)
    said, real = math.prod(shape) * kind.itemsize, member.file_size - file.tell()
    if said != real:
        raise ValueError(f"{member.filename} says that it has {said:,} bytes, and has {real:,}")


def _safetensors_arrays(path: Path) -> dict[str, np.ndarray]:
    with safetensors.safe_open(path, "numpy") as file:
        names = (file.metadata() or {}).get("names")
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    return found | ({"names": np.array(json.loads(names))} if names else {})


def _checked_boxes(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, R, F) and boxes (N, R, 5)."""
    values, boxes = arrays["features"], arrays["boxes"]
    if values.ndim != 3 or not values.size or not _is_numeric(values):
        raise DataError(f"{path}: features are {values.dtype} {values.shape}, wanted numbers (N, R, F), not empty")
    if boxes.shape != (*values.shape[:2], 4) or not _is_numeric(boxes):
        raise DataError(f"{path}: boxes are {boxes.dtype} {boxes.shape}, wanted numbers {(*values.shape[:2], 4)}")
    with np.errstate(over="ignore"):  # what is too large for 32 bits is named below
        values, boxes = values.astype(np.float32), boxes.astype(np.float32)
    if not (np.isfinite(values).all() and np.isfinite(boxes).all()):
        raise DataError(f"{path}: has numbers that are not finite; fix the features and boxes")
    left, top, right, bottom = np.moveaxis(boxes, -1, 0)
    real: np.ndarray = np.any(boxes, axis=-1)
    bad = real & ~((left >= 0) & (top >= 0) & (right <= 1) & (bottom <= 1) & (left < right) & (top < bottom))
    if bad.any():
        row, index = map(int, np.argwhere(bad)[0])
        raise DataError(
            f"{path}: box {index} of image {row} is {boxes[row, index].tolist()}, wanted left < right and top < "
            "bottom as fractions of the image from 0 to 1"
        )
    gaps = real[:, 1:] & ~real[:, :-1]
    if gaps.any() or not real.any(1).all():
        row = int(np.argmax(gaps.any(1) | ~real.any(1)))
        raise DataError(f"{path}: image {row} has an empty box before a real one, or no box; wanted real ones first")
    five = normalize_boxes(boxes).reshape(*boxes.shape[:2], 5)
    return values, np.where(real[:, :, None], five, np.float32(0))


def _checked_classes(path: Path, arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    classes = arrays.get("classes")
    if classes is None:
        return None
    if (
        classes.shape != shape
        or not np.issubdtype(classes.dtype, np.integer)
        or not 0 <= classes.min() <= classes.max() < MAX_CLASS
    ):
        raise DataError(f"{path}: classes are {classes.dtype} {classes.shape}, wanted whole numbers {shape} from 0")
    return classes.astype(np.int64)


def _is_numeric(array: np.ndarray) -> bool:
    return np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)


def _with_whole_image(features: np.ndarray, boxes: np.ndarray, classes: np.ndarray | None) -> ImageRegions:
    if tuple(boxes[0, :4]) == WHOLE_IMAGE:
        return ImageRegions(features, boxes, classes)
    return ImageRegions(
        np.concatenate([features.mean(0, np.float64, keepdims=True).astype(np.float32), features]),
        np.concatenate([normalize_boxes([WHOLE_IMAGE]), boxes]),
        None if classes is None else np.concatenate([[UNKNOWN_CLASS], classes]),
    )
