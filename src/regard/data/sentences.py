"""Text files as documents of sentences, for pretraining on sentence pairs.

A line is a sentence, and in a text file a blank line ends a document, as in BERT's own data. Long lines are
running prose and are split after every end mark that a space and a capital letter follow: "He left. She stayed."
In a long line this also splits "Dr. Watson"; that costs little.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from regard.data.chunking import TextChunk
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import read_documents
from regard.data.text_corpus import TextCorpus, TextFilesConfig

LONG_LINE = 160  # characters; few sentences are longer
# An end mark, closing quotes and brackets, and white space; Chinese end marks need no white space.
SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[”’」』）]*\s*")
OPENING = "\"'“‘«([¿¡—"


class SentenceCorpus(TextCorpus):
    """Documents of sentences, split into training and validation like `TextCorpus`, but by whole documents sooner.

    The end of a short document may be less than the two sentences that a pair needs.
    """

    min_validation_documents = 6

    def __init__(self, paths: Sequence[Path | str], config: TextFilesConfig) -> None:
        super().__init__(paths, config)
        self.settings["blank_lines"] = True
        if self._lengths is not None and not self.dev:
            few = "one document is" if self.documents == 1 else f"{self.documents:,} documents are"
            self.notes.append(
                f"{few} too few to split by documents: the last {config.validation:.0%} of each is for validation"
            )

    def _read(self, paths: Sequence[Path], report: BadRows) -> Iterator[TextChunk]:
        config = self.config
        return read_documents(paths, field=config.field, on_error=config.on_error, report=report, blank_lines=True)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without surrounding white space."""
    lines = (line.strip() for line in text.split("\n"))
    return [sentence for line in lines if line for sentence in _split(line)]


def _split(line: str) -> list[str]:
    if len(line) <= LONG_LINE:
        return [line]
    ends = [found.end() for found in SENTENCE_END.finditer(line) if _starts_sentence(line, found.end(), found[0])]
    parts = (line[start:stop].strip() for start, stop in zip([0, *ends], [*ends, len(line)], strict=True))
    return [part for part in parts if part]


def _starts_sentence(line: str, index: int, mark: str) -> bool:
    """Whether a sentence may start here: with a capital letter, after opening quotes and brackets."""
    return mark[0] in "。！？" or line[index:].lstrip(OPENING)[:1].isupper()
