"""The inputs of `regard run`: arguments, lines of standard input, or the lines or rows of a file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from regard.errors import InputError
from regard.tasks.image_inputs import is_image

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")

Source = Literal["arguments", "lines", "text"]


def read_inputs(inputs: list[str] | None, file: Path | None = None) -> tuple[list[str], Source]:
    """The inputs as they were given; none: the lines of a file or of standard input; "-": all of it as one text."""
    if file is not None:
        if inputs:
            raise InputError(f"--file {file} and {inputs[0]!r} both say what to run on; give one")
        return read_texts(file), "lines"
    if inputs == ["-"]:
        return [_stdin().removesuffix("\n")], "text"
    if inputs:
        return inputs, "arguments"
    if sys.stdin.isatty():
        raise InputError('nothing to run on; give a text: regard run MODEL "a text", --file FILE, or lines on stdin')
    lines = _stdin().splitlines()
    if not lines:
        raise InputError("standard input is empty; wanted one text a line")
    return lines, "lines"


def read_texts(file: Path) -> list[str]:
    """The lines of a text file, or the texts of a table; of a pair, with a tab between the two."""
    from regard.data.readers.bad_rows import BadRows
    from regard.data.readers.columns import Columns
    from regard.data.readers.labeled import read_labeled
    from regard.data.readers.lines import format_suffix, read_lines

    if format_suffix(file) in TABLES:
        report = BadRows()
        rows = read_labeled([file], columns=Columns(), on_error="stop", report=report, labels_needed=False)
        return [row.text if row.second is None else f"{row.text}\t{row.second}" for row in rows]
    lines = []
    for number, line in enumerate(read_lines(file), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError as error:
            raise InputError(f"{file}:{number}: is not UTF-8: {error.reason} at byte {error.start}") from error
    if not lines:
        raise InputError(f"{file} is empty; wanted one text a line")
    return lines


def check_are_texts(texts: Sequence[str], model: Path) -> None:
    """InputError for the name of a file where a text is wanted."""
    for text in texts:
        if any(sign.isspace() for sign in text):
            continue
        if is_image(text):
            raise InputError(f"{text} is an image, and {model} takes texts; wanted a text, or a model for images")
        if len(text) < 256 and "." in text and Path(text).is_file():
            raise InputError(
                f"{text} is a file; to run on its texts: regard run {model} --file {text}; or on all of it as one "
                f"text: regard run {model} - < {text}"
            )


def _stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from error
