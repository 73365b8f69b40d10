"""Pictures in a folder and the captions that a file has for them: names and texts only, no pixels."""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from regard.data.readers.lines import DAMAGES, LIMIT, check_file, damaged, ending, open_packed, read_lines
from regard.data.readers.pairs import CONTROL, BadLine, BadLines, is_validation, validation_share
from regard.errors import DataError

WANTED = "wanted .jsonl, .json (COCO), .tsv, .csv or .txt (each may be .gz or .zst)"
WANTED_PATHS = "wanted the folder of the pictures and the file of their captions, such as photos/ captions.jsonl"
ENDINGS = (".png", ".jpg", ".jpeg")
NAMES = ("image", "file_name", "picture", "image_name", "filename")  # what a file calls the picture of a row
TEXTS = ("caption", "captions", "comment", "text")  # and its caption or captions
LONGEST = 5_000  # characters of a caption
JSON_BYTES = 256 << 20  # a JSON file is read as a whole; COCO's largest has 92 million
MISSING = "missing picture"
NUMBERED = re.compile(r"(\.\w+)#\d+$")  # Flickr's "a.jpg#3": the fourth caption of a.jpg


@dataclass(frozen=True, slots=True)
class Captioned:
    """A picture and its captions; `name` is its path inside the folder, with slashes."""

    picture: Path
    captions: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class BadPicture(BadLine):
    """A picture left out: it has no line number, since no line is to blame."""

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}: {self.detail}"


def folder_and_file(paths: Sequence[Path]) -> tuple[Path, Path]:
    """The folder of images and the file of captions, in whichever order the user gave them."""
    folders, files = [path for path in paths if path.is_dir()], [path for path in paths if not path.is_dir()]
    if len(folders) != 1 or len(files) != 1:
        raise DataError(f"got {' '.join(map(str, paths)) or 'nothing'}; {WANTED_PATHS}")
    return folders[0], files[0]


def read_captions(folder: Path, file: Path, *, on_error: Literal["stop", "skip"], report: BadLines) -> list[Captioned]:
    """The pictures of a folder with the captions of a file, in the order in which the file first names them.

    .jsonl has {"image": "a.jpg", "caption": "…"} or "captions": [...] a line; .tsv a.jpg<tab>caption, or Flickr's
    a.jpg#0<tab>caption; .csv a header and commas or Flickr's bars; .json COCO's images and annotations, or a list of
    what .jsonl has. What is no caption is a DataError, or with "skip" in `report`. Pictures without a caption, and
    captions of pictures that are not there (Flickr8k's own file has five), are always in `report`; where more are not
    there than are, that is a DataError too. Names that lead out of the folder are refused.
    """
    folder, file = Path(folder), Path(file)
    check_file(file)
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder, wanted the folder of the pictures")
    found: dict[str, list[str]] = {}
    items, parse = _format(file)
    for number, item in items:
        try:
            name, captions = _checked(folder, *parse(item))
        except _BadRowError as bad:
            line = BadLine(file, number, *bad.args)
            if on_error == "stop" and line.reason != MISSING:
                raise DataError(f"{line}; mend it, or data.on_error=skip to leave such lines out") from None
            report.add(line)
        else:
            found.setdefault(name, []).extend(captions)
    if not found:
        first = f"; the first bad line: {report.first[0]}" if report.first else ""
        raise DataError(f"{file}: no caption of a picture in {folder}{first}")
    if on_error == "stop" and report.by_reason[MISSING] > sum(map(len, found.values())):
        raise DataError(
            f"{file}: {report.by_reason[MISSING]:,} of its lines are of pictures that are not in {folder}, more than "
            f"are of some that are; the first: {report.first[0]}; give their folder, or data.on_error=skip"
        )
    for name in (name for name in _pictures(folder) if name not in found):
        report.add(BadPicture(folder / name, 0, "no caption", f"{file.name} has none for it"))
    return [Captioned(folder / name, tuple(captions), name) for name, captions in found.items()]


def split_validation(captioned: Sequence[Captioned], validation: int) -> tuple[list[Captioned], list[Captioned]]:
    """What to train on, and about `validation` pictures kept out, at most a tenth but never none.

    A hash of a picture's name decides, so all captions of a picture are on one side.
    """
    share = validation_share(len(captioned), validation)
    while not (kept_out := [one for one in captioned if is_validation(one.name, share)]) and 0 < share < 1:
        share *= 1.05  # in small steps, so that of few pictures one is kept out and not all
    training = [one for one in captioned if not is_validation(one.name, share)]
    if not training or not kept_out:
        raise DataError(f"{len(captioned)} pictures are too few to train on some and keep some out; give more")
    return training, kept_out


Named = tuple[Any, Any]  # the name of a picture, and its caption or captions, as the file has them
Format = tuple[Iterator[tuple[int, Any]], Callable[[Any], Named]]


class _BadRowError(Exception):
    """Reason and detail of a row that captions no picture; where it stands is not known yet."""


def _format(file: Path) -> Format:
    """The rows of a file with their numbers, and what takes the name and the captions out of one."""
    kind = ending(file)
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
    raise DataError(f"{file}: the first line has no tab and is no header; wanted image,caption or name<tab>caption")


def _header(line: str) -> tuple[str, list[str]] | None:
    """What parts the columns of a table, and what they are called; None if this line does not say."""
    for mark in ("\t", "|", ","):
        columns = [column.strip().strip('"').lower() for column in line.split(mark)]
        if set(NAMES) & set(columns) and set(TEXTS) & set(columns):
            return mark, columns
    return None


def _row(mark: str, header: list[str], line: bytes) -> Named:
    """One row of a table with a header; a caption in the last column may have the mark in it."""
    text = _text(line)
    try:
        cells = next(csv.reader([text], strict=True)) if mark == "," else text.split(mark)
    except csv.Error as error:
        raise _BadRowError("bad quotes", str(error)) from None
    if len(cells) < len(header):
        raise _BadRowError("wrong columns", f"got {len(cells)}, wanted {len(header)} ({', '.join(header)})")
    last = len(header) - 1
    return _fields(dict(zip(header, [*cells[:last], mark.join(cells[last:])], strict=True)))


def _columns(line: bytes) -> Named:
    """A line without a header: the name, maybe with the number of the caption, and the caption."""
    columns = _text(line).split("\t", 2)
    if len(columns) < 2:
        raise _BadRowError("wrong columns", "got no tab, wanted name<tab>caption")
    return NUMBERED.sub(r"\1", columns[0].strip()), columns[1]


def _fields(found: object) -> Named:
    if isinstance(found, dict):
        name = next((found[key] for key in NAMES if key in found), None)
        captions = next((found[key] for key in TEXTS if key in found), None)
        if name is not None and captions is not None:
            return name, captions
    raise _BadRowError("wrong fields", 'wanted {"image": "a.jpg", "caption": "..."}, or "captions": ["...", "..."]')


def _json_rows(file: Path) -> Format:
    found = _whole_json(file)
    if isinstance(found, list):
        return iter(enumerate(found, 1)), _fields
    images, annotations = (found.get(key) if isinstance(found, dict) else None for key in ("images", "annotations"))
    if not isinstance(images, list) or not isinstance(annotations, list):
        raise DataError(f'{file}: wanted COCO\'s {{"images": [...], "annotations": [...]}}')
    named = [image for image in images if isinstance(image, dict) and isinstance(image.get("id"), int | str)]
    names = {image["id"]: image.get("file_name") for image in named}
    return iter(enumerate(annotations, 1)), partial(_annotation, names)


def _annotation(names: dict[int | str, Any], found: object) -> Named:
    """One of COCO's annotations, by its number in the list."""
    if not isinstance(found, dict) or "caption" not in found:
        raise _BadRowError("wrong fields", 'wanted {"image_id": ..., "caption": "..."}')
    number = found.get("image_id")
    if not isinstance(number, int | str) or number not in names:
        raise _BadRowError("unknown image", f"no image has the id {str(number)[:80]!r}")
    return names[number], found["caption"]


def _whole_json(file: Path) -> Any:
    try:
        with open_packed(file) as opened:
            raw = opened.read(JSON_BYTES + 1)
    except DAMAGES as error:
        raise damaged(file, "its beginning", error) from error
    if len(raw) > JSON_BYTES:
        raise DataError(f"{file}: has more than {JSON_BYTES:,} bytes; write it as .jsonl, which is read line by line")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: is no JSON ({error})") from None


def _text(line: bytes) -> str:
    if len(line) > LIMIT:
        raise _BadRowError("too long", f"the line has more than {LIMIT:,} bytes")
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
    """The name of a picture that is there, and its captions on one line each."""
    name = _inside(name)
    if not os.path.isfile(folder / name):  # noqa: PTH113 (Path.is_file raises for names that are too long)
        raise _BadRowError(MISSING, f"there is no {name[:200]} in {folder}")
    several = captions if isinstance(captions, list) else [captions]
    if not several:
        raise _BadRowError("empty caption", f"none for {name}")
    return name, [_caption(caption) for caption in several]


def _inside(name: object) -> str:
    """The name of a file below the folder, however it is spelled. What links there lead to is the user's own matter."""
    if not isinstance(name, str) or not name.strip():
        raise _BadRowError("no name", "the name of the picture is missing")
    if found := CONTROL.search(name):
        raise _BadRowError("control character", f"U+{ord(found[0]):04X} in the name of the picture")
    path, windows = PurePosixPath(name.strip()), PureWindowsPath(name.strip())
    if windows.anchor or ".." in windows.parts:  # Windows parts at both slashes, so this is both systems' rule
        raise _BadRowError("outside", f"{name[:200]!r} leads out of the folder; wanted a name inside it")
    return path.as_posix()


def _caption(caption: object) -> str:
    if not isinstance(caption, str):
        raise _BadRowError("wrong fields", f"a caption is {type(caption).__name__}, wanted text")
    text = " ".join(caption.split())
    if not text:
        raise _BadRowError("empty caption", "the caption is empty")
    if found := CONTROL.search(text):
        raise _BadRowError("control character", f"U+{ord(found[0]):04X} in the caption")
    if len(text) > LONGEST:
        raise _BadRowError("too long", f"the caption has {len(text):,} characters, at most {LONGEST:,} wanted")
    return text


def _pictures(folder: Path) -> Iterator[str]:
    """The names of all pictures in the folder and below it, in the order of the alphabet."""
    for where, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            if name.lower().endswith(ENDINGS):
                yield (Path(where) / name).relative_to(folder).as_posix()
