"""Questions about pictures in a folder, as the package easy-vqa lays them out.

answers.txt             the answers, one a line
train/questions.json    a list of [question, answer, number of the picture]
train/images/0.png      the pictures
test/                   the same, to be measured on
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.data.readers.pairs import BadLine, BadLines
from regard.errors import DataError

WANTED = "wanted a folder with answers.txt, train/ and test/, each with questions.json and images/, as easy-vqa has it"
BYTES = 256 << 20  # of the largest list of questions that is read


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a picture, and its answer."""

    text: str
    answer: str
    picture: Path

    @property
    def kind(self) -> str:
        """yes_no or what, told by the answer."""
        return "yes_no" if self.answer in ("yes", "no") else "what"


@dataclass(frozen=True)
class AskedPictures:
    """Questions to learn from and questions to be measured on."""

    training: list[Asked]
    validation: list[Asked]
    answers: tuple[str, ...]


def read_easy_vqa(folder: Path, *, on_error: Literal["stop", "skip"], report: BadLines) -> AskedPictures:
    """The questions of a folder. DataError: a file that is missing or damaged; a bad question, unless it is skipped."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}, {WANTED}")
    answers = tuple(dict.fromkeys(line.strip() for line in _text(folder / "answers.txt").splitlines() if line.strip()))
    if not answers:
        raise DataError(f"{folder / 'answers.txt'}: has no answers, wanted one a line")
    parts = [_part(folder / name, answers, on_error, report) for name in ("train", "test")]
    return AskedPictures(parts[0], parts[1], answers)


def _part(folder: Path, answers: Sequence[str], on_error: str, report: BadLines) -> list[Asked]:
    file = folder / "questions.json"
    try:
        rows = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: is no JSON ({str(error)[:100]}); wanted a list of questions") from error
    if not isinstance(rows, list):
        raise DataError(f"{file}: is {type(rows).__name__}, wanted a list of [question, answer, number of the picture]")
    there = {path.stem: path for path in (folder / "images").glob("*.png")}
    known = set(answers)
    found = []
    for number, row in enumerate(rows, 1):
        one = _asked(row, known, there)
        if isinstance(one, Asked):
            found.append(one)
            continue
        bad = BadLine(file, number, *one)
        if on_error == "stop":
            raise DataError(f"{bad}; mend it, or data.on_error=skip to leave such questions out")
        report.add(bad)
    if not found:
        raise DataError(
            f"{file}: has no good question{f'; the first bad one: {report.first[0]}' if report.first else ''}"
        )
    return found


def _asked(row: Any, answers: set[str], there: dict[str, Path]) -> Asked | tuple[str, str]:
    """The question of a row, or the reason why it is none, and what exactly is wrong."""
    if not isinstance(row, list) or len(row) != 3:
        return "no question", f"got {str(row)[:60]}, wanted [question, answer, number of the picture]"
    text, answer, picture = row
    if not isinstance(text, str) or not text.strip():
        return "no text", f"got {str(text)[:60]!r}, wanted a question"
    if answer not in answers if isinstance(answer, str) else True:
        return "unknown answer", f"got {str(answer)[:60]!r}, which is not in answers.txt"
    if isinstance(picture, bool) or not isinstance(picture, int) or str(picture) not in there:
        return "no picture", f"there is no images/{str(picture)[:20]}.png"
    return Asked(text.strip(), answer, there[str(picture)])


def _text(file: Path) -> str:
    if not file.is_file():
        raise DataError(f"{file}: no such file, {WANTED}")
    if file.stat().st_size > BYTES:
        raise DataError(f"{file}: has more than {BYTES >> 20} MB, {WANTED}")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is no UTF-8 text, {WANTED}") from error
