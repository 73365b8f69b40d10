"""Read image regions of an object detector: features and boxes in a .npz or .safetensors file."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors

from regard.data.regions import UNKNOWN_CLASS, WHOLE_IMAGE, ImageRegions, Regions, normalize_boxes
from regard.errors import DataError

KEYS = ("features", "boxes", "classes", "names")  # that a file may have


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
    names = [str(name) for name in arrays.get("names", np.arange(len(values)))]
    if len(names) != len(values):
        raise DataError(f"{path}: {len(names)} names for {len(values)} images; wanted one for each")
    real = np.asarray(boxes.any(-1))
    rows = range(len(values))
    found = [
        _with_whole_image(
            values[row][real[row]], boxes[row][real[row]], None if classes is None else classes[row][real[row]]
        )
        for row in rows
    ]
    return RegionFile(Regions(found), names)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise DataError(f"{path}: no such file, wanted a .npz or .safetensors file of regions")
    if path.suffix not in (".npz", ".safetensors"):
        raise DataError(f"{path}: got the ending {path.suffix!r}, wanted .npz or .safetensors")
    try:
        if path.suffix == ".npz":
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        else:
            with safetensors.safe_open(path, "numpy") as file:
                names = (file.metadata() or {}).get("names")
                found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            found |= {"names": np.array(json.loads(names))} if names else {}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, safetensors.SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as {path.suffix} ({' '.join(str(error).split())[:160]})") from error
    if unknown := sorted(found.keys() - set(KEYS)):
        raise DataError(f"{path}: has {', '.join(unknown)}, wanted features, boxes and perhaps classes and names only")
    if missing := [name for name in ("features", "boxes") if name not in found]:
        raise DataError(f"{path}: has no {' and no '.join(missing)}; wanted features (N, R, F) and boxes (N, R, 4)")
    return found


def _checked_boxes(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, R, F) and boxes (N, R, 5)."""
    values, boxes = arrays["features"], arrays["boxes"]
    if values.ndim != 3 or not values.size or not _is_numeric(values):
        raise DataError(f"{path}: features are {values.dtype} {values.shape}, wanted numbers (N, R, F), not empty")
    if boxes.shape != (*values.shape[:2], 4) or not _is_numeric(boxes):
        raise DataError(f"{path}: boxes are {boxes.dtype} {boxes.shape}, wanted numbers {(*values.shape[:2], 4)}")
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
    return values.astype(np.float32), np.where(real[:, :, None], five, np.float32(0))


def _checked_classes(path: Path, arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    classes = arrays.get("classes")
    if classes is None:
        return None
    if classes.shape != shape or not np.issubdtype(classes.dtype, np.integer) or classes.min() < 0:
        raise DataError(f"{path}: classes are {classes.dtype} {classes.shape}, wanted whole numbers {shape} from 0")
    return classes.astype(np.int64)


def _is_numeric(array: np.ndarray) -> bool:
    return np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)


def _with_whole_image(features: np.ndarray, boxes: np.ndarray, classes: np.ndarray | None) -> ImageRegions:
    if tuple(boxes[0, :4]) == WHOLE_IMAGE:
        return ImageRegions(features, boxes, classes)
    return ImageRegions(
        np.concatenate([features.mean(0, keepdims=True), features]),
        np.concatenate([normalize_boxes([WHOLE_IMAGE]), boxes]),
        None if classes is None else np.concatenate([[UNKNOWN_CLASS], classes]),
    )
