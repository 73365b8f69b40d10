"""Read captions: images of a folder and their captions from a file; names and texts only, no pixels."""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from regard.data.readers.bad_rows import CONTROL_CHARACTER, BadRow, BadRows
from regard.data.readers.lines import (
    MAX_LINE_BYTES,
    READ_ERRORS,
    check_file,
    damaged_file_error,
    format_suffix,
    open_compressed,
    read_lines,
)
from regard.data.splits import is_validation, validation_fraction
from regard.errors import DataError

WANTED = "wanted .jsonl, .json (COCO), .tsv, .csv or .txt (each may be .gz or .zst)"
WANTED_PATHS = "wanted the folder of the images and the file of their captions, such as photos/ captions.jsonl"
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
IMAGE_COLUMNS = ("image", "file_name", "picture", "image_name", "filename")  # column or field of the image name
CAPTION_COLUMNS = ("caption", "captions", "comment", "text")  # and of its caption or captions
MAX_CAPTION_CHARACTERS = 5_000
MAX_JSON_BYTES = 256 << 20  # a JSON file is read into memory; COCO's largest has 92 million
MISSING = "missing image"
NUMBERED_NAME = re.compile(r"(\.\w+)#\d+$")  # Flickr's "a.jpg#3": the fourth caption of a.jpg


@dataclass(frozen=True, slots=True)
class CaptionedImage:
    """An image and its captions; `name` is its path inside the folder, with slashes."""

    image: Path
    captions: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class BadImage(BadRow):
    """An image that was left out; it has no line number."""

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}: {self.detail}"


def folder_and_file(paths: Sequence[Path]) -> tuple[Path, Path]:
    """The folder of images and the file of captions, in whichever order the user gave them."""
    folders, files = [path for path in paths if path.is_dir()], [path for path in paths if not path.is_dir()]
    if len(folders) != 1 or len(files) != 1:
        raise DataError(f"got {' '.join(map(str, paths)) or 'nothing'}; {WANTED_PATHS}")
    return folders[0], files[0]


def read_captions(
    folder: Path, file: Path, *, on_error: Literal["stop", "skip"], report: BadRows
) -> list[CaptionedImage]:
    """The images of a folder with their captions, in the order in which the file first names them.

    .jsonl has {"image": "a.jpg", "caption": "…"} or "captions": [...] a line; .tsv a.jpg<tab>caption, or Flickr's
    a.jpg#0<tab>caption; .csv a header and commas or Flickr's bars; .json COCO's images and annotations, or a list of
    the objects of .jsonl. A bad row is a DataError, or with "skip" goes to `report`. Captions of missing images
    (Flickr8k's own file has five) always go to `report`; if more images are missing than found, that is a DataError
    too. Images without a caption are counted as excluded: they may be of another split. Names that lead out of the
    folder are bad rows.
    """
    folder, file = Path(folder), Path(file)
    check_file(file)
    if not folder.is_dir():
        raise DataError(f"{folder}: is not a folder, wanted the folder of the images")
    found: dict[str, list[str]] = {}
    items, parse = _format(file)
    for number, item in items:
        try:
            name, captions = _checked(folder, *parse(item))
        except _BadRowError as bad:
            line = BadRow(file, number, *bad.args)
            if on_error == "stop" and line.reason != MISSING:
                raise DataError(f"{line}; fix it, or set data.on_error=skip to skip such lines") from None
            report.add(line)
        else:
            found.setdefault(name, []).extend(captions)
    if not found:
        first = f"; the first bad line: {report.first[0]}" if report.first else ""
        raise DataError(f"{file}: no caption of an image in {folder}{first}")
    if on_error == "stop" and report.by_reason[MISSING] > sum(map(len, found.values())):
        raise DataError(
            f"{file}: {report.by_reason[MISSING]:,} of its lines name images that are not in {folder}, more than "
            f"name images that are; the first: {report.first[0]}; give their folder, or set data.on_error=skip"
        )
    if without := sum(name not in found for name in _image_names(folder)):
        report.excluded[f"images of {folder} without a caption in {file.name}"] += without
    return [CaptionedImage(folder / name, tuple(captions), name) for name, captions in found.items()]


def split_validation(
    captioned: Sequence[CaptionedImage], validation: int
) -> tuple[list[CaptionedImage], list[CaptionedImage]]:
    """Training images and about `validation` validation images, at most a tenth of all and at least one.

    A hash of the image's name decides, so all captions of an image are on one side.
    """
    fraction = validation_fraction(len(captioned), validation)
    while not (held_out := [one for one in captioned if is_validation(one.name, fraction)]) and 0 < fraction < 1:
        fraction *= 1.05  # in small steps, so that of few images one is held out and not all
    training = [one for one in captioned if not is_validation(one.name, fraction)]
    if not training or not held_out:
        raise DataError(f"{len(captioned)} images are too few for training and validation; give more")
    return training, held_out


Named = tuple[Any, Any]  # image name, and its caption or captions, as in the file
Format = tuple[Iterator[tuple[int, Any]], Callable[[Any], Named]]


class _BadRowError(Exception):
    """Reason and detail of a bad row; its line is not known here."""


def _format(file: Path) -> Format:
    """The rows of a file with their numbers, and the function that parses one."""
    kind = format_suffix(file)
    if kind == ".json":
        return _json_rows(file)
    rows = ((number, line) for number, line in enumerate(read_lines(file), 1) if line.strip())
    if kind == ".jsonl":
        return rows, lambda line: _fields(_json(_text(line)))
    if kind not in (".tsv", ".csv", ".txt", ".token"):
        raise DataError(f"{file}: got the ending {kind!r}, {WANTED}")
    first = next((line for line in read_lines(file) if line.strip()), b"").decode("utf-8", "replace")
    if header := _header(first):
        next(rows)
        return rows, partial(_row, *header)
    if "\t" in first or kind == ".tsv":
        return rows, _columns
    raise DataError(f"{file}: the first line has no tab and is not a header; wanted image,caption or name<tab>caption")


def _header(line: str) -> tuple[str, list[str]] | None:
    """The separator and the column names of a table; None if this line is not a header."""
    for separator in ("\t", "|", ","):
        columns = [column.strip().strip('"').lower() for column in line.split(separator)]
        if set(IMAGE_COLUMNS) & set(columns) and set(CAPTION_COLUMNS) & set(columns):
            return separator, columns
    return None


def _row(separator: str, header: list[str], line: bytes) -> Named:
    """One row of a table with a header; a caption in the last column may contain the separator."""
    text = _text(line)
    try:
        cells = next(csv.reader([text], strict=True)) if separator == "," else text.split(separator)
    except csv.Error as error:
        raise _BadRowError("bad quotes", str(error)) from None
    if len(cells) < len(header):
        raise _BadRowError("wrong columns", f"got {len(cells)}, wanted {len(header)} ({', '.join(header)})")
    last = len(header) - 1
    return _fields(dict(zip(header, [*cells[:last], separator.join(cells[last:])], strict=True)))


def _columns(line: bytes) -> Named:
    """A line of a file without a header: image name, perhaps with the number of the caption, and caption."""
    columns = _text(line).split("\t", 2)
    if len(columns) < 2:
        raise _BadRowError("wrong columns", "got no tab, wanted name<tab>caption")
    return NUMBERED_NAME.sub(r"\1", columns[0].strip()), columns[1]


def _fields(found: object) -> Named:
    if isinstance(found, dict):
        name = next((found[key] for key in IMAGE_COLUMNS if key in found), None)
        captions = next((found[key] for key in CAPTION_COLUMNS if key in found), None)
        if name is not None and captions is not None:
            return name, captions
    raise _BadRowError("wrong fields", 'wanted {"image": "a.jpg", "caption": "..."}, or "captions": ["...", "..."]')


def _json_rows(file: Path) -> Format:
    found = _read_json(file)
    if isinstance(found, list):
        return iter(enumerate(found, 1)), _fields
    images, annotations = (found.get(key) if isinstance(found, dict) else None for key in ("images", "annotations"))
    if not isinstance(images, list) or not isinstance(annotations, list):
        raise DataError(f'{file}: wanted COCO\'s {{"images": [...], "annotations": [...]}}')
    named = [image for image in images if isinstance(image, dict) and isinstance(image.get("id"), int | str)]
    names = {image["id"]: image.get("file_name") for image in named}
    return iter(enumerate(annotations, 1)), partial(_annotation, names)


def _annotation(names: dict[int | str, Any], found: object) -> Named:
    """One of COCO's annotations."""
    if not isinstance(found, dict) or "caption" not in found:
        raise _BadRowError("wrong fields", 'wanted {"image_id": ..., "caption": "..."}')
    number = found.get("image_id")
    if not isinstance(number, int | str) or number not in names:
        raise _BadRowError("unknown image", f"no image has the id {str(number)[:80]!r}")
    return names[number], found["caption"]


def _read_json(file: Path) -> Any:
    try:
        with open_compressed(file) as opened:
            raw = opened.read(MAX_JSON_BYTES + 1)
    except READ_ERRORS as error:
        raise damaged_file_error(file, "its beginning", error) from error
    if len(raw) > MAX_JSON_BYTES:
        raise DataError(
            f"{file}: has more than {MAX_JSON_BYTES:,} bytes; write it as .jsonl, which is read line by line"
        )
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: is not JSON ({error})") from None


def _text(line: bytes) -> str:
    if len(line) > MAX_LINE_BYTES:
        raise _BadRowError("too long", f"the line has more than {MAX_LINE_BYTES:,} bytes")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _BadRowError("invalid UTF-8", f"byte {error.start + 1} of the line is {line[error.start]:#x}") from None


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _BadRowError("bad JSON", str(error)) from None


def _checked(folder: Path, name: object, captions: object) -> tuple[str, list[str]]:
    """The name of an existing image, and its captions with white space collapsed."""
    name = _inside(name)
    if not os.path.isfile(folder / name):  # noqa: PTH113 (Path.is_file raises for names that are too long)
        raise _BadRowError(MISSING, f"there is no {name[:200]} in {folder}")
    several = captions if isinstance(captions, list) else [captions]
    if not several:
        raise _BadRowError("empty caption", f"none for {name}")
    return name, [_caption(caption) for caption in several]


def _inside(name: object) -> str:
    """The name of a file inside the folder, with slashes. Symbolic links are followed."""
    if not isinstance(name, str) or not name.strip():
        raise _BadRowError("no name", "the name of the image is missing")
    if found := CONTROL_CHARACTER.search(name):
        raise _BadRowError("control character", f"U+{ord(found[0]):04X} in the name of the image")
    path, windows = PurePosixPath(name.strip()), PureWindowsPath(name.strip())
    if windows.anchor or ".." in windows.parts:  # Windows paths split at both slashes, so this covers both systems
        raise _BadRowError("outside", f"{name[:200]!r} leads out of the folder; wanted a name inside it")
    return path.as_posix()


def _caption(caption: object) -> str:
    if not isinstance(caption, str):
        raise _BadRowError("wrong fields", f"a caption is {type(caption).__name__}, wanted text")
    text = " ".join(caption.split())
    if not text:
        raise _BadRowError("empty caption", "the caption is empty")
    if found := CONTROL_CHARACTER.search(text):
        raise _BadRowError("control character", f"U+{ord(found[0]):04X} in the caption")
    if len(text) > MAX_CAPTION_CHARACTERS:
        raise _BadRowError(
            "too long", f"the caption has {len(text):,} characters, at most {MAX_CAPTION_CHARACTERS:,} wanted"
        )
    return text


def _image_names(folder: Path) -> Iterator[str]:
    """The names of all images in the folder and below it, sorted."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(IMAGE_SUFFIXES):
                yield (Path(parent) / name).relative_to(folder).as_posix()
