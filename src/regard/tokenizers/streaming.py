"""Incremental decoding: text as tokens arrive, in complete characters that no later token changes."""

import codecs

from regard.tokenizers.text import TextTokenizer


class StreamDecoder:
    """Call `add` for every token, then `finish`: the returned texts joined equal `tokenizer.decode` of all tokens.

    `continuing`: the tokens continue an earlier text, as in `decode`.
    """

    def __init__(self, tokenizer: TextTokenizer, *, continuing: bool = False) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._prefix = "" if continuing else tokenizer.token_bytes.prefix
        self._ids: list[int] = []
        self._emitted = 0

    def add(self, number: int) -> str:
        """The characters that this token completes; often a word, sometimes nothing."""
        token_bytes = self._tokenizer.token_bytes
        if token_bytes.concatenates:
            return self._strip_prefix(self._utf8.decode(token_bytes.of(number)))
        # The text of a token depends on the tokens before it: decode all again.
        self._ids.append(number)
        return self._new_text()

    def finish(self) -> str:
        """The rest: an incomplete character, as U+FFFD."""
        return self._strip_prefix(self._utf8.decode(b"", final=True))

    def _strip_prefix(self, text: str) -> str:
        if not text:
            return ""
        prefix, self._prefix = self._prefix, ""
        return text.removeprefix(prefix)

    def _new_text(self) -> str:
        text = self._tokenizer.decode(self._ids)
        new, self._emitted = text[self._emitted :], len(text)
        return new
