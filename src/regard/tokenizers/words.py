"""The words of a text, and which tokens belong to which word."""

import codecs
import re
from collections.abc import Sequence

WORD = re.compile(r"\w+|[^\w\s]")
WORD_OF_LETTERS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits: "walk", "don't", "1984"


def split_words(text: str) -> list[str]:
    """Split a text into words: runs of letters, digits and underscores; every other visible character alone."""
    return WORD.findall(text)


def whitespace_word_ids(text: str) -> list[int]:
    """For each word of `split_words(text)`, the index of the whitespace-separated word that contains it."""
    return [len(text[: match.start() + 1].split()) - 1 for match in WORD.finditer(text)]


def single_token_words(tokens: Sequence[bytes]) -> list[str | None]:
    """The word that each token spells on its own; None for continuations, punctuation and special tokens.

    If tokens carry the space before a word, only tokens with that space start a word. "##ing" never matches.
    """
    prefix = " " if any(token.startswith(b" ") and token.strip() for token in tokens) else ""
    found: list[str | None] = []
    for token in tokens:
        text = token.decode("utf-8", "replace")
        word = text.removeprefix(prefix)
        found.append(word if text.startswith(prefix) and WORD_OF_LETTERS.fullmatch(word) else None)
    return found


def word_ids_of_tokens(tokens: list[bytes]) -> list[int]:
    """For each token, the index of its word in the text that all tokens spell; -1 for empty tokens and no word.

    A token that spans two words belongs to the first. White space belongs to the next word, at the end of the text
    to the last.
    """
    word_ids = _word_ids_of_bytes(b"".join(tokens))
    result, start = [], 0
    for token in tokens:
        result.append(word_ids[start] if token else -1)
        start += len(token)
    return result


def _word_ids_of_bytes(raw: bytes) -> list[int]:
    """For each byte of UTF-8, the index of its word; white space belongs to the next word, else to the last."""
    characters, text = _characters_of_bytes(raw)
    word_ids, last = [-1] * len(text), -1
    start = 0
    for last, match in enumerate(WORD.finditer(text)):
        word_ids[start : match.end()] = [last] * (match.end() - start)
        start = match.end()
    word_ids[start:] = [last] * (len(text) - start)
    return [word_ids[index] for index in characters]


def _characters_of_bytes(raw: bytes) -> tuple[list[int], str]:
    """For each byte, the index of the character it belongs to; and the decoded text."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    characters, text = [], ""
    for position in range(len(raw)):
        new = decoder.decode(raw[position : position + 1])
        # No new character yet: the byte belongs to the next one.
        characters.append(len(text) + max(0, len(new) - 1))
        text += new
    return characters, text + decoder.decode(b"", final=True)
