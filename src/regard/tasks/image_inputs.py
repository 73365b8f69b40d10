"""Images among the inputs of `regard run`: files, and folders of files. Importing this does not import torch."""

from collections.abc import Sequence
from pathlib import Path

from regard.errors import InputError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


def is_image(path: str | Path) -> bool:
    """Whether this is the name of an image file."""
    return str(path).lower().endswith(IMAGE_SUFFIXES)


def image_paths(inputs: Sequence[str]) -> list[Path]:
    """The images that are named, and those of the folders that are named."""
    found: list[Path] = []
    for path in map(Path, inputs):
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if is_image(file))
            if not inside:
                raise InputError(f"{path} has no image; wanted .png or .jpg files")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f"there is no image {path}")
    return found
