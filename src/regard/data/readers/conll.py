"""Sentences whose words are labeled, from CoNLL files: a word a line with its label, a blank line between sentences.

Columns are parted by tabs where a line has one, else by spaces. The word stands first and the label last, in .conllu
files second and fourth (its part of speech). Left out: -DOCSTART- lines, comments ("# ..." before a sentence), and of
.conllu the lines that are no words (1-2, 8.1).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.readers.lines import LIMIT, check_file, ending, read_lines
from regard.data.readers.pairs import CONTROL, BadLine, BadLines
from regard.data.readers.tables import Flaw
from regard.errors import DataError

BLANK = " \t\r"
DOCUMENT = "-DOCSTART-"
NO_WORD = re.compile(r"\d+[-.]\d+")  # a range of words, or one that is not in the text


@dataclass(frozen=True)
class Tagged:
    """The words of a sentence and the label of each; no labels where the file has none."""

    words: tuple[str, ...]
    labels: tuple[str, ...] | None


def read_tagged(
    paths: Sequence[Path],
    *,
    on_error: Literal["stop", "skip"],
    report: BadLines,
    word: int | None = None,
    column: int | None = None,
    labels_needed: bool = True,
) -> Iterator[Tagged]:
    """The sentences of CoNLL files, plain or packed, one at a time.

    `word` and `column` are the columns of the word and of its label, from 1; None: as said above. A missing or damaged
    file, and one without a good sentence, is a DataError. So is a bad line, unless `on_error` is "skip": `report` has
    it then, and its whole sentence is left out. Without `labels_needed` a file may have words alone.
    """
    paths = [Path(path) for path in paths]
    for path in paths:
        check_file(path)
    return (
        sentence
        for path in paths
        for sentence in _good(path, _File(path, word, column, labels_needed), on_error == "skip", report)
    )


def _good(path: Path, file: "_File", skip: bool, report: BadLines) -> Iterator[Tagged]:
    good = bad = 0
    for found in file.sentences():
        if isinstance(found, Tagged):
            good += 1
            yield found
            continue
        if not skip:
            raise DataError(f"{found}; mend it, or data.on_error=skip to leave such sentences out")
        bad += 1
        report.add(found)
    if not good:
        raise DataError(f"{path}: no sentence; " + (f"all {bad:,} are bad" if bad else "the file has no words"))


class _File:
    """One file while it is read: where its columns are, and how many it has once the first line is known."""

    def __init__(self, path: Path, word: int | None, column: int | None, labels_needed: bool) -> None:
        assert all(place is None or place > 0 for place in (word, column)), "columns are counted from 1"
        universal = ending(path) == ".conllu"
        self._path = path
        self._universal = universal
        self._word = (word or (2 if universal else 1)) - 1
        self._label = (column or (4 if universal else 0)) - 1  # -1: the last
        self._labels_needed = labels_needed
        self._width: int | None = None
        self._tabs = False

    def sentences(self) -> Iterator[Tagged | BadLine]:
        """The good sentences, and of each bad one its first bad line."""
        words: list[tuple[str, str | None]] = []
        bad: BadLine | None = None
        for number, line in enumerate(read_lines(self._path), 1):
            found = self._read(line, first=not words and bad is None)
            if found is None:
                continue
            if found == "end":
                if bad or words:
                    yield bad or _tagged(words)
                words, bad = [], None
            elif isinstance(found, Flaw):
                bad = bad or BadLine(self._path, number, *found)
            else:
                words.append(found)
        if bad or words:
            yield bad or _tagged(words)

    def _read(self, line: bytes, first: bool) -> tuple[str, str | None] | Flaw | Literal["end"] | None:
        """A word and its label; "end" of a sentence; None for what is left out."""
        if len(line) > LIMIT:
            return Flaw("too long", f"the line has more than {LIMIT:,} bytes")
        try:
            text = line.decode().strip("\r")
        except UnicodeDecodeError as error:
            return Flaw("invalid UTF-8", f"byte {error.start + 1} of the line is {line[error.start]:#04x}")
        if not text.strip(BLANK):
            return "end"
        # Not split(): a word may be a space that does not break.
        cells = [cell.strip(BLANK) for cell in text.split("\t")] if "\t" in text else re.split(" +", text.strip(BLANK))
        if cells[0] == DOCUMENT:
            return "end"
        if first and text.startswith("#") and self._is_comment(text, len(cells)):
            return None
        if self._universal and NO_WORD.fullmatch(cells[0]):
            return None
        return self._columns(cells, "\t" in text)

    def _is_comment(self, text: str, columns: int) -> bool:
        """Not each line with # is one: the sign is a word, too."""
        return "\t" not in text and (self._width is None or self._tabs or columns != self._width)

    def _columns(self, cells: list[str], tabs: bool) -> tuple[str, str | None] | Flaw:
        alone = len(cells) == 1
        if alone and (self._labels_needed or self._width not in (None, 1)):
            return Flaw("one column", f"got {cells[0][:40]!r} alone, wanted a word and its label")
        if max(self._word, self._label) >= len(cells):
            wanted = max(self._word, self._label) + 1
            return Flaw("wrong columns", f"got {len(cells)}, wanted at least {wanted}")
        if self._width is None:
            self._width, self._tabs = len(cells), tabs
        if len(cells) != self._width:
            return Flaw("wrong columns", f"got {len(cells)}, wanted {self._width} as in the lines before")
        word, label = cells[self._word], None if alone else cells[self._label]
        if not alone and self._word == self._label % len(cells):
            return Flaw("wrong columns", f"the word and its label are both column {self._word + 1}; choose another")
        if not word or label == "":
            return Flaw(*(("empty label", "the label is empty") if word else ("empty word", "the word is empty")))
        if sign := CONTROL.search(word + (label or "")):
            return Flaw("control character", f"U+{ord(sign[0]):04X} in the line")
        return word, label


def _tagged(words: list[tuple[str, str | None]]) -> Tagged:
    labels = tuple(label for _, label in words if label is not None)
    return Tagged(tuple(word for word, _ in words), labels or None)
