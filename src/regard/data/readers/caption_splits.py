"""The parts of images with captions: those to train on, and those to evaluate on, as published (Flickr8k) or as given.

A part is a file of captions like the first, with a folder of images or in the same one; or a list of image names, one a
line, as Flickr8k has for its splits (Flickr_8k.devImages.txt).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import IMAGE_SUFFIXES, CaptionedImage, folder_and_file, read_captions
from regard.data.readers.lines import read_lines
from regard.errors import DataError


def read_split(
    paths: Sequence[Path],
    dev: Sequence[Path],
    *,
    images: Path | None = None,
    on_error: Literal["stop", "skip"],
    report: BadRows,
) -> tuple[list[CaptionedImage], list[CaptionedImage] | None]:
    """The images to train on and those of `dev`; without `dev` all, and None: a part has to be held out.

    `images` is a list of the images to train on. Images that are in neither list are counted as excluded.
    """
    folder, file = folder_and_file(paths)
    captioned = read_captions(folder, file, on_error=on_error, report=report)
    training, validation = captioned, None
    if len(dev) == 1 and is_name_list(dev[0]):
        validation = named_in(captioned, dev[0], file)
    elif dev:
        where = folder_and_file(dev if len(dev) > 1 else [folder, *dev])
        validation = read_captions(*where, on_error=on_error, report=report)
    if images is not None:
        training = named_in(captioned, images, file)
    if validation is not None:
        held_out = {one.image for one in validation}
        training = [one for one in training if one.image not in held_out]
        if not training:
            raise DataError(f"{dev[0]}: has all images of {images or file}; wanted others to evaluate on")
    taken = {one.image for one in (*training, *(validation or ()))}
    if others := sum(one.image not in taken for one in captioned):
        report.excluded[f"images of {file.name} in none of the lists"] += others
    return training, validation


def is_name_list(file: Path) -> bool:
    """Whether a file lists names of images, one a line, rather than captions."""
    if file.is_dir() or file.suffix.lower() not in (".txt", ".lst", ".list"):
        return False
    first = next((line for line in read_lines(file) if line.strip()), b"").decode("utf-8", "replace").strip()
    return first.lower().endswith(IMAGE_SUFFIXES) and "\t" not in first


def named_in(captioned: Sequence[CaptionedImage], file: Path, captions: Path) -> list[CaptionedImage]:
    """The images that the list names. DataError: a name without a caption, or an empty list."""
    names = {line.decode("utf-8", "replace").strip() for line in read_lines(file)} - {""}
    found = [one for one in captioned if one.name in names or one.image.name in names]
    if len(found) < len(names):
        known = {name for one in found for name in (one.name, one.image.name)}
        missing = sorted(names - known)
        if not found or len(missing) > len(names) // 10:
            first = missing[0] if missing else "no name"
            raise DataError(
                f"{file}: {len(missing):,} of its {len(names):,} images are not in {captions}, the first: {first}"
            )
    if not found:
        raise DataError(f"{file}: is empty, wanted names of images, one a line")
    return found


def read_listed(paths: Sequence[Path], report: BadRows) -> list[CaptionedImage]:
    """The images of a folder and a file of captions to evaluate on; with a list of names only those."""
    lists = [path for path in paths if path.is_file() and is_name_list(path)]
    folder, file = folder_and_file([path for path in paths if path not in lists])
    found = read_captions(folder, file, on_error="skip", report=report)
    return named_in(found, lists[0], file) if lists else found
