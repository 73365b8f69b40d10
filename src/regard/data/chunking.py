"""Long texts in chunks, cut where a pre-tokenizer cuts too: the tokens of the chunks are those of the whole text.

The pre-tokenizers of GPT-2 and Llama 3 end a token after a newline that stands alone between two visible characters,
and before a space that does. Nothing they match looks further than that across the cut.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CHUNK_CHARACTERS = 1 << 20  # about
MAX_WITHOUT_NEWLINE = 2 * CHUNK_CHARACTERS  # after so many characters without a newline, cut at a space
MAX_WITHOUT_SPACE = 8 * CHUNK_CHARACTERS  # after so many without either, cut anywhere; a token may be split
BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True)
class TextChunk:
    """A part of a document; a document of up to about a million characters is one chunk."""

    text: str
    is_last: bool = True  # the document ends with it
    is_truncated: bool = False  # it ends here, but not at its own end: the rest belongs to the validation set


def chunk_stream(parts: Iterable[str]) -> Iterator[TextChunk]:
    """The chunks of one document that is read in parts of any length; none if it is empty."""
    pending = ""
    for part in parts:
        pending += part
        while length := _chunk_length(pending):
            yield TextChunk(pending[:length], is_last=False)
            pending = pending[length:]
    if pending:
        yield TextChunk(pending)


def chunk_text(text: str) -> Iterator[TextChunk]:
    """The chunks of one document in memory."""
    return chunk_stream(text[start : start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS))


def split_at_blank_lines(parts: Iterable[str]) -> Iterator[TextChunk]:
    """The chunks of the documents of a text that is read in parts; one or more blank lines separate documents."""
    pending, in_document = "", False
    for part in parts:
        *closed, pending = BLANK_LINES.split(pending + part)
        for text in closed:
            if in_document or text.strip():
                yield TextChunk(text or "\n")
            in_document = False
        while length := _chunk_length(pending):
            yield TextChunk(pending[:length], is_last=False)
            pending, in_document = pending[length:], True
    if in_document or pending.strip():
        yield TextChunk(pending)


def _chunk_length(text: str) -> int:
    """Length of the next chunk of a text that may go on; 0: wait for more."""
    if len(text) <= CHUNK_CHARACTERS:
        return 0
    if index := _last_isolated(text, "\n", min(len(text) - 1, MAX_WITHOUT_NEWLINE)):
        return index + 1
    if len(text) <= MAX_WITHOUT_NEWLINE:
        return 0
    if index := _last_isolated(text, " ", MAX_WITHOUT_NEWLINE):
        return index
    return MAX_WITHOUT_SPACE if len(text) > MAX_WITHOUT_SPACE else 0


def _last_isolated(text: str, mark: str, stop: int) -> int:
    """The last index before `stop` where the mark stands between two visible characters; 0: nowhere."""
    index = text.rfind(mark, 1, stop)
    while index > 0:
        if not text[index - 1].isspace() and not text[index + 1].isspace():
            return index
        index = text.rfind(mark, 1, index)
    return 0
