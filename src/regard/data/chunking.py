"""Long texts in pieces, cut where a tokenizer would cut too: the tokens of the pieces are those of the whole.

GPT-2's pattern, and Llama 3's, end a token behind a line end that stands alone between two visible characters, and
before a space that does. Nothing they match looks further than that over the cut.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PIECE = 1 << 20  # characters of a piece, about
LONG = 2 * PIECE  # so many without a line end to cut at: then a space will do
HARD = 8 * PIECE  # so many without either: no words but data; a token may be cut here
BLANK = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True)
class Piece:
    """A part of a document's text; a document of no more than about a million characters is one piece."""

    text: str
    last: bool = True  # the document is closed with it
    cut: bool = False  # closed, but not at its own end: the rest is kept out or was


def in_pieces(chunks: Iterable[str]) -> Iterator[Piece]:
    """The pieces of one document, whose text comes in chunks of any length; of no text, none."""
    waiting = ""
    for chunk in chunks:
        waiting += chunk
        while place := _cut(waiting):
            yield Piece(waiting[:place], last=False)
            waiting = waiting[place:]
    if waiting:
        yield Piece(waiting)


def pieces_of(text: str) -> Iterator[Piece]:
    """The pieces of one document that is in memory."""
    return in_pieces(text[start : start + PIECE] for start in range(0, len(text), PIECE))


def between_blank_lines(chunks: Iterable[str]) -> Iterator[Piece]:
    """The documents of a text that comes in chunks, a blank line or more between them, in pieces."""
    waiting, inside = "", False
    for chunk in chunks:
        *closed, waiting = BLANK.split(waiting + chunk)
        for text in closed:
            if inside or text.strip():
                yield Piece(text or "\n")
            inside = False
        while place := _cut(waiting):
            yield Piece(waiting[:place], last=False)
            waiting, inside = waiting[place:], True
    if inside or waiting.strip():
        yield Piece(waiting)


def _cut(text: str) -> int:
    """How many characters of a text, of which more may follow, make a piece; 0: wait for more."""
    if len(text) <= PIECE:
        return 0
    if place := _last_alone(text, "\n", min(len(text) - 1, LONG)):
        return place + 1
    if len(text) <= LONG:
        return 0
    if place := _last_alone(text, " ", LONG):
        return place
    return HARD if len(text) > HARD else 0


def _last_alone(text: str, mark: str, stop: int) -> int:
    """The last place before `stop` where the mark stands between two visible characters; 0: nowhere."""
    place = text.rfind(mark, 1, stop)
    while place > 0:
        if not text[place - 1].isspace() and not text[place + 1].isspace():
            return place
        place = text.rfind(mark, 1, place)
    return 0
