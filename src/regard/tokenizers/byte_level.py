"""Bytes spelled as characters, the way byte-level vocabularies write them, and bytes shown to people."""

import codecs
import re
from collections.abc import Sequence

WORD = re.compile(r"\w+|[^\w\s]")
SPOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits: "walk", "don't", "1984"


def byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes: the printable ones of Latin-1 as they are, the rest from U+0100 on."""
    printable = {
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    }
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def visible(raw: bytes) -> str:
    """A short name for the bytes of a token: without the space before a word; a space alone is "␣".

    What cannot be printed is escaped, half a character is its bytes, as in "\\xc3".
    """
    text = raw.decode("utf-8", "backslashreplace")
    text = (text.removeprefix(" ") or " ").replace(" ", "␣")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def whole_words(tokens: Sequence[bytes]) -> list[str | None]:
    """The word that each token spells by itself; None for the rest of a word, a sign and a token without bytes.

    Where tokens carry the space before a word, only with it do they begin one. "##ing" is no word anyway.
    """
    front = " " if any(token.startswith(b" ") and token.strip() for token in tokens) else ""
    found: list[str | None] = []
    for token in tokens:
        text = token.decode("utf-8", "replace")
        word = text.removeprefix(front)
        found.append(word if text.startswith(front) and SPOKEN.fullmatch(word) else None)
    return found


def words_of_tokens(tokens: list[bytes]) -> list[int]:
    """For each token the index of its word in the text that all of them spell; -1 for one without bytes, or no word.

    A token with parts of two words belongs to the first. White space belongs to the word it leads to, at the end of
    the text to the last.
    """
    owners = _words_of_bytes(b"".join(tokens))
    result, start = [], 0
    for token in tokens:
        result.append(owners[start] if token else -1)
        start += len(token)
    return result


def _words_of_bytes(raw: bytes) -> list[int]:
    """For each byte of UTF-8 the index of its word; white space counts to the next word or else the last."""
    places, text = _places_of_bytes(raw)
    owners, last = [-1] * len(text), -1
    start = 0
    for last, match in enumerate(WORD.finditer(text)):
        owners[start : match.end()] = [last] * (match.end() - start)
        start = match.end()
    owners[start:] = [last] * (len(text) - start)
    return [owners[place] for place in places]


def _places_of_bytes(raw: bytes) -> tuple[list[int], str]:
    """The text of the bytes, and for each byte the index of the character it belongs to."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    places, text = [], ""
    for position in range(len(raw)):
        new = decoder.decode(raw[position : position + 1])
        # No character yet: the byte begins or continues the one to come.
        places.append(len(text) + max(0, len(new) - 1))
        text += new
    return places, text + decoder.decode(b"", final=True)
