"""Read CoNLL files: sentences with a label for each word, one word a line, a blank line between sentences.

Tabs separate columns if a line has one, else spaces. The first column is the word and the last the label; in .conllu
files the second is the word and the fourth its part of speech. Skipped: -DOCSTART- lines, comments ("# ..." before a
sentence), and in .conllu the lines that are not words (1-2, 8.1).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.readers.bad_rows import CONTROL_CHARACTER, BadRow, BadRows, RowProblem
from regard.data.readers.lines import MAX_LINE_BYTES, check_file, format_suffix, read_lines
from regard.errors import DataError

BLANK = " \t\r"
DOCUMENT = "-DOCSTART-"
NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # id of a range of words, or of a word that is not in the text


@dataclass(frozen=True)
class TaggedSentence:
    """The words of a sentence and their labels; None if the file has no labels."""

    words: tuple[str, ...]
    labels: tuple[str, ...] | None


def read_tagged(
    paths: Sequence[Path],
    *,
    on_error: Literal["stop", "skip"],
    report: BadRows,
    word: int | None = None,
    column: int | None = None,
    labels_needed: bool = True,
) -> Iterator[TaggedSentence]:
    """Stream the sentences of CoNLL files, plain or compressed.

    `word` and `column` are the columns of the word and its label, from 1; None: the defaults above. DataError: a file
    is missing, damaged or has no good sentence; or a line is bad, unless `on_error` is "skip": then its sentence is
    skipped and goes to `report`. Without `labels_needed` a file may have words only.
    """
    paths = [Path(path) for path in paths]
    for path in paths:
        check_file(path)
    return (
        sentence
        for path in paths
        for sentence in _good(path, _File(path, word, column, labels_needed), on_error == "skip", report)
    )


def _good(path: Path, file: "_File", skip: bool, report: BadRows) -> Iterator[TaggedSentence]:
    good = bad = 0
    for found in file.sentences():
        if isinstance(found, TaggedSentence):
            good += 1
            yield found
            continue
        if not skip:
            raise DataError(f"{found}; fix it, or set data.on_error=skip to skip such sentences")
        bad += 1
        report.add(found)
    if not good:
        raise DataError(f"{path}: no sentence; " + (f"all {bad:,} are bad" if bad else "the file has no words"))


class _File:
    """Parser of one file: which columns to read, and how many columns the first line has."""

    def __init__(self, path: Path, word: int | None, column: int | None, labels_needed: bool) -> None:
        assert all(place is None or place > 0 for place in (word, column)), "columns are counted from 1"
        universal = format_suffix(path) == ".conllu"
        self._path = path
        self._universal = universal
        self._word = (word or (2 if universal else 1)) - 1
        self._label = (column or (4 if universal else 0)) - 1  # -1: the last
        self._labels_needed = labels_needed
        self._width: int | None = None
        self._tabs = False

    def sentences(self) -> Iterator[TaggedSentence | BadRow]:
        """The good sentences, and the first bad row of each bad one."""
        words: list[tuple[str, str | None]] = []
        bad: BadRow | None = None
        for number, line in enumerate(read_lines(self._path), 1):
            found = self._read(line, first=not words and bad is None)
            if found is None:
                continue
            if found == "end":
                if bad or words:
                    yield bad or _tagged(words)
                words, bad = [], None
            elif isinstance(found, RowProblem):
                bad = bad or BadRow(self._path, number, *found)
            else:
                words.append(found)
        if bad or words:
            yield bad or _tagged(words)

    def _read(self, line: bytes, first: bool) -> tuple[str, str | None] | RowProblem | Literal["end"] | None:
        """A word and its label; "end" of a sentence; None for lines to skip."""
        if len(line) > MAX_LINE_BYTES:
            return RowProblem("too long", f"the line has more than {MAX_LINE_BYTES:,} bytes")
        try:
            text = line.decode().strip("\r")
        except UnicodeDecodeError as error:
            return RowProblem("invalid UTF-8", f"byte {error.start + 1} of the line is {line[error.start]:#04x}")
        if not text.strip(BLANK):
            return "end"
        # Not split(): a word may be a no-break space.
        cells = [cell.strip(BLANK) for cell in text.split("\t")] if "\t" in text else re.split(" +", text.strip(BLANK))
        if cells[0] == DOCUMENT:
            return "end"
        if first and text.startswith("#") and self._is_comment(text, len(cells)):
            return None
        if self._universal and NOT_A_WORD.fullmatch(cells[0]):
            return None
        return self._columns(cells, "\t" in text)

    def _is_comment(self, text: str, columns: int) -> bool:
        """Whether a line that starts with # is a comment: # may also be a word."""
        return "\t" not in text and (self._width is None or self._tabs or columns != self._width)

    def _columns(self, cells: list[str], tabs: bool) -> tuple[str, str | None] | RowProblem:
        alone = len(cells) == 1
        if alone and (self._labels_needed or self._width not in (None, 1)):
            return RowProblem("one column", f"got {cells[0][:40]!r} alone, wanted a word and its label")
        if max(self._word, self._label) >= len(cells):
            wanted = max(self._word, self._label) + 1
            return RowProblem("wrong columns", f"got {len(cells)}, wanted at least {wanted}")
        if self._width is None:
            self._width, self._tabs = len(cells), tabs
        if len(cells) != self._width:
            return RowProblem("wrong columns", f"got {len(cells)}, wanted {self._width} as in the lines before")
        word, label = cells[self._word], None if alone else cells[self._label]
        if not alone and self._word == self._label % len(cells):
            return RowProblem(
                "wrong columns", f"the word and its label are both column {self._word + 1}; choose another"
            )
        if not word or label == "":
            return RowProblem(*(("empty label", "the label is empty") if word else ("empty word", "the word is empty")))
        if sign := CONTROL_CHARACTER.search(word + (label or "")):
            return RowProblem("control character", f"U+{ord(sign[0]):04X} in the line")
        return word, label


def _tagged(words: list[tuple[str, str | None]]) -> TaggedSentence:
    labels = tuple(label for _, label in words if label is not None)
    return TaggedSentence(tuple(word for word, _ in words), labels or None)
