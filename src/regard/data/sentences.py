"""The user's text as documents of sentences, for what is learned from neighbors.

A line is a sentence, and in a text file a blank line ends a document: so BERT's own data was written. Long lines are
running prose, and are split at every end mark that a space and a capital letter follow: "He left. She stayed." A
name such as "Dr. Watson" is split too where it stands in a long line; that costs little.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from regard.data.chunking import Piece
from regard.data.readers.documents import read_documents
from regard.data.readers.pairs import BadLines
from regard.data.text_corpus import TextCorpus, TextFilesConfig

LONG_LINE = 160  # characters; a sentence seldom has as many
# An end mark, quotes and brackets that close behind it, and the space; Chinese end marks need none.
ENDS = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[”’」』）]*\s*")
OPENING = "\"'“‘«([¿¡—"


class SentenceCorpus(TextCorpus):
    """The documents of the user's files, split in two as those of a language model are, but whole ones sooner.

    The end of a short document is less than the two sentences that a pair needs.
    """

    enough = 6

    def __init__(self, paths: Sequence[Path | str], config: TextFilesConfig) -> None:
        super().__init__(paths, config)
        self.settings["blank_lines"] = True
        if self._lengths is not None:
            few = "one document is" if self.documents == 1 else f"{self.documents:,} documents are"
            self.notes.append(
                f"{few} too few to keep whole ones out: the last {config.validation:.0%} of each is held out"
            )

    def _read(self, report: BadLines) -> Iterator[Piece]:
        config = self.config
        return read_documents(self.files, field=config.field, on_error=config.on_error, report=report, blank_lines=True)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, without the white space around them."""
    lines = (line.strip() for line in text.split("\n"))
    return [sentence for line in lines if line for sentence in _split(line)]


def _split(line: str) -> list[str]:
    if len(line) <= LONG_LINE:
        return [line]
    ends = [found.end() for found in ENDS.finditer(line) if _begins(line, found.end(), found[0])]
    parts = (line[start:stop].strip() for start, stop in zip([0, *ends], [*ends, len(line)], strict=True))
    return [part for part in parts if part]


def _begins(line: str, place: int, mark: str) -> bool:
    """Whether a sentence may begin here: a capital, quotes and brackets before it aside."""
    return mark[0] in "。！？" or line[place:].lstrip(OPENING)[:1].isupper()
