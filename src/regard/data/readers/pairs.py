"""Sentence pairs from the user's own files: streamed, checked line by line, bad lines named and counted."""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from regard.data.readers.lines import LIMIT, ending, read_lines
from regard.errors import DataError

WANTED = "wanted one .tsv or .jsonl file, or two text files that go line by line (each may be .gz or .zst)"
LETTERS = 20  # of a very long word; bounds a sentence in a script without spaces
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class BadLine:
    """A line that is no sentence pair: where it stands, the kind of mistake, what exactly."""

    file: Path
    line: int
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}: {self.detail}"


@dataclass
class BadLines:
    """The lines left out: how many of each kind, and the first five of them.

    `left_out` counts those that nothing is wrong with, but that are no examples, by why that is.
    """

    first: list[BadLine] = field(default_factory=list)
    by_reason: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.by_reason.total()

    def add(self, bad: BadLine) -> None:
        self.by_reason[bad.reason] += 1
        if len(self.first) < 5:
            self.first.append(bad)

    def summary(self) -> list[str]:
        """Lines for the user: the counts, then the first bad lines. Nothing left out: no lines."""
        others = [f"left out: {count:,} {why}" for why, count in self.left_out.items()]
        if not self.count:
            return others
        kinds = ", ".join(f"{reason} {count:,}" for reason, count in self.by_reason.most_common())
        return [
            *others,
            f"bad lines left out: {self.count:,} ({kinds}); the first:",
            *(f"  {bad}" for bad in self.first),
        ]


def read_pairs(
    paths: Sequence[Path], *, on_error: Literal["stop", "skip"], report: BadLines, longest: int
) -> Iterator[tuple[str, str]]:
    """The (source, target) pairs of one .tsv or .jsonl file or of two parallel files, one at a time.

    What makes a whole file useless (missing, cut off, unequal lengths, no pair at all) is a DataError; what
    can be seen without reading, at once. So is a bad line, unless `on_error` is "skip": `report` has it then.
    """
    paths = [Path(path) for path in paths]
    split = _splitter(paths)
    rows = _rows(paths, [read_lines(path) for path in paths])
    return _good_pairs(paths, rows, split, on_error == "skip", report, longest)


def is_validation(source: str, share: float) -> bool:
    """Whether a pair with this source sentence is kept out of training, for this share of all sentences.

    It depends on the sentence alone, without its case and spacing: no source is ever on both sides.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", source).casefold())
    digest = hashlib.blake2b(" ".join(folded.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def validation_share(pairs: int, validation: int) -> float:
    """The share with which `is_validation` keeps about `validation` of so many pairs out, at most a tenth."""
    return min(validation / pairs, 0.1) if pairs else 0.0


class _BadLineError(Exception):
    """Reason, detail and side (0 source, 1 target) of a bad line; where it stands is not known yet."""


def _good_pairs(
    paths: list[Path],
    rows: Iterator[tuple[bytes, ...]],
    split: Callable[..., tuple[str, str]],
    skip: bool,
    report: BadLines,
    longest: int,
) -> Iterator[tuple[str, str]]:
    good = number = 0
    first: BadLine | None = None
    for number, lines in enumerate(rows, 1):
        try:
            source, target = split(*(_text(line, side) for side, line in enumerate(lines)))
            pair = _sentence(source, 0, longest), _sentence(target, 1, longest)
        except _BadLineError as bad:
            reason, detail, side = bad.args
            line = BadLine(paths[side % len(paths)], number, reason, detail)
            if not skip:
                raise DataError(f"{line}; mend it, or data.on_error=skip to leave such lines out") from None
            first = first or line
            report.add(line)
        else:
            good += 1
            yield pair
    if not good:
        names = " and ".join(str(path) for path in paths)
        found = f"the first of {number:,} bad lines: {first}" if number else "the file is empty"
        raise DataError(f"{names}: no sentence pair; {found}")


def _splitter(paths: list[Path]) -> Callable[..., tuple[str, str]]:
    """What makes (source, target) of the lines with one number, by the names of the files."""
    endings = [ending(path) for path in paths]
    known = {".tsv": _columns, ".jsonl": _fields}
    if len(paths) == 2 and not known.keys() & endings:
        return _as_they_are
    if len(paths) != 1:
        raise DataError(f"got {len(paths)} files ({', '.join(path.name for path in paths)}), {WANTED}")
    if endings[0] not in known:
        raise DataError(f"{paths[0]}: got the ending {endings[0]!r}, {WANTED}")
    return known[endings[0]]


def _rows(paths: list[Path], streams: list[Iterator[bytes]]) -> Iterator[tuple[bytes, ...]]:
    """The lines with the same number, one of each file."""
    for number, lines in enumerate(zip_longest(*streams)):
        if None in lines:
            rest = [sum(1 for _ in stream) for stream in streams]
            one, other = (number + (line is not None) + more for line, more in zip(lines, rest, strict=True))
            raise DataError(
                f"{paths[0]} has {one:,} lines and {paths[1]} {other:,}, wanted the same sentences line by line"
            )
        yield lines


def _text(line: bytes, side: int) -> str:
    if len(line) > LIMIT:
        raise _BadLineError("too long", f"the line has more than {LIMIT:,} bytes", side)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _BadLineError(
            "invalid UTF-8", f"byte {error.start + 1} of the line is {line[error.start]:#x}", side
        ) from None


def _columns(line: str) -> tuple[str, str]:
    columns = line.split("\t", 2)
    if len(columns) < 2:
        raise _BadLineError("wrong columns", "got no tab, wanted source<tab>target", 0)
    return columns[0], columns[1]


def _fields(line: str) -> tuple[str, str]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _BadLineError("bad JSON", str(error), 0) from None
    sides = (found.get("source"), found.get("target")) if isinstance(found, dict) else (None, None)
    if not (isinstance(sides[0], str) and isinstance(sides[1], str)):
        raise _BadLineError("wrong fields", 'wanted {"source": "...", "target": "..."}', 0)
    return sides[0], sides[1]


def _as_they_are(source: str, target: str) -> tuple[str, str]:
    return source, target


def _sentence(text: str, side: int, longest: int) -> str:
    """The sentence without the white space around it."""
    name = ("source", "target")[side]
    text = text.strip()
    if not text:
        raise _BadLineError("empty side", f"the {name} is empty", side)
    if found := CONTROL.search(text):
        raise _BadLineError("control character", f"U+{ord(found[0]):04X} in the {name}", side)
    if len(text) > longest and (words := len(text.split())) > longest:
        raise _BadLineError("too long", f"the {name} has {words:,} words, at most {longest:,} wanted", side)
    if len(text) > longest * LETTERS:
        most = f"at most {longest * LETTERS:,} wanted"
        raise _BadLineError("too long", f"the {name} has {len(text):,} characters, {most}", side)
    return text
