"""Read questions about images, from a folder in the layout of the easy-vqa package.

answers.txt             the answers, one a line
train/questions.json    a list of [question, answer, image number]
train/images/0.png      the images
test/                   the same, for validation
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.data.readers.bad_rows import BadRow, BadRows
from regard.errors import DataError

WANTED = "wanted a folder with answers.txt, train/ and test/, each with questions.json and images/, as easy-vqa has it"
MAX_BYTES = 256 << 20  # of questions.json


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """A question about an image, and its answer."""

    text: str
    answer: str
    image: Path

    @property
    def kind(self) -> str:
        """yes_no or what, by the answer."""
        return "yes_no" if self.answer in ("yes", "no") else "what"


@dataclass(frozen=True)
class ImageQuestions:
    """Training and validation questions."""

    training: list[ImageQuestion]
    validation: list[ImageQuestion]
    answers: tuple[str, ...]


def read_easy_vqa(folder: Path, *, on_error: Literal["stop", "skip"], report: BadRows) -> ImageQuestions:
    """Read the questions of a folder. DataError: a file is missing or damaged, or a question is bad and not skipped."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}, {WANTED}")
    answers = tuple(
        dict.fromkeys(line.strip() for line in _read_text(folder / "answers.txt").splitlines() if line.strip())
    )
    if not answers:
        raise DataError(f"{folder / 'answers.txt'}: has no answers, wanted one a line")
    parts = [_part(folder / name, answers, on_error, report) for name in ("train", "test")]
    return ImageQuestions(parts[0], parts[1], answers)


def _part(folder: Path, answers: Sequence[str], on_error: str, report: BadRows) -> list[ImageQuestion]:
    file = folder / "questions.json"
    try:
        rows = json.loads(_read_text(file))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: is not JSON ({str(error)[:100]}); wanted a list of questions") from error
    if not isinstance(rows, list):
        raise DataError(f"{file}: is {type(rows).__name__}, wanted a list of [question, answer, image number]")
    images = {path.stem: path for path in (folder / "images").glob("*.png")}
    known = set(answers)
    found = []
    for number, row in enumerate(rows, 1):
        one = _parse_question(row, known, images)
        if isinstance(one, ImageQuestion):
            found.append(one)
            continue
        bad = BadRow(file, number, *one)
        if on_error == "stop":
            raise DataError(f"{bad}; fix it, or set data.on_error=skip to skip such questions")
        report.add(bad)
    if not found:
        raise DataError(f"{file}: no good question{f'; the first bad one: {report.first[0]}' if report.first else ''}")
    return found


def _parse_question(row: Any, answers: set[str], images: dict[str, Path]) -> ImageQuestion | tuple[str, str]:
    """The question of a row, or the reason and detail of a bad row."""
    if not isinstance(row, list) or len(row) != 3:
        return "no question", f"got {str(row)[:60]}, wanted [question, answer, image number]"
    text, answer, image = row
    if not isinstance(text, str) or not text.strip():
        return "no text", f"got {str(text)[:60]!r}, wanted a question"
    if answer not in answers if isinstance(answer, str) else True:
        return "unknown answer", f"got {str(answer)[:60]!r}, which is not in answers.txt"
    if isinstance(image, bool) or not isinstance(image, int) or str(image) not in images:
        return "no image", f"there is no images/{str(image)[:20]}.png"
    return ImageQuestion(text.strip(), answer, images[str(image)])


def _read_text(file: Path) -> str:
    if not file.is_file():
        raise DataError(f"{file}: no such file, {WANTED}")
    if file.stat().st_size > MAX_BYTES:
        raise DataError(f"{file}: has more than {MAX_BYTES >> 20} MB, {WANTED}")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is not UTF-8 text, {WANTED}") from error
