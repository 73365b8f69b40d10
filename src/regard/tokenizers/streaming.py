"""The text of tokens as they come: whole characters, nothing that a later token would change."""

import codecs

from regard.tokenizers.text import TextTokenizer


class StreamDecoder:
    """`add` every token, then `finish`: the texts one after another are what `tokenizer.decode` gives of all.

    `continuing`: they go on from a text, as in `decode`.
    """

    def __init__(self, tokenizer: TextTokenizer, *, continuing: bool = False) -> None:
        self._tokenizer = tokenizer
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._front = "" if continuing else tokenizer.spellings.front
        self._ids: list[int] = []
        self._given = 0

    def add(self, number: int) -> str:
        """The characters that are whole now and were not before; often a word, sometimes nothing."""
        spellings = self._tokenizer.spellings
        if spellings.whole:
            return self._without_front(self._bytes.decode(spellings.of(number)))
        # What a token means depends on those before: all are decoded again.
        self._ids.append(number)
        return self._new()

    def finish(self) -> str:
        """What was held back: half a character, as U+FFFD."""
        return self._without_front(self._bytes.decode(b"", final=True))

    def _without_front(self, text: str) -> str:
        if not text:
            return ""
        front, self._front = self._front, ""
        return text.removeprefix(front)

    def _new(self) -> str:
        text = self._tokenizer.decode(self._ids)
        new, self._given = text[self._given :], len(text)
        return new
