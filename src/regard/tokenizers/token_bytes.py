"""The bytes that each token of a vocabulary spells.

The `tokenizers` library decodes whole sequences only. With the bytes of each token, text can be decoded while it is
generated, and tokens can be labeled in plots.
"""

import json
import re
from typing import Any

import tokenizers

from regard.errors import InputError

SPACE = "▁"  # SentencePiece's spelling of a space
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")  # byte fallback: characters that are not in the vocabulary
REPLACE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def byte_alphabet() -> dict[str, int]:
    """GPT-2's byte-to-character map: printable Latin-1 bytes as they are, the rest from U+0100 on."""
    printable = {
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    }
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def printable_label(raw: bytes) -> str:
    """A printable label for the bytes of a token, without its leading space; a space alone is "␣".

    Unprintable characters are escaped; an incomplete character is shown as its bytes, such as "\\xc3".
    """
    text = raw.decode("utf-8", "backslashreplace")
    text = (text.removeprefix(" ") or " ").replace(" ", "␣")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class TokenBytes:
    """The bytes of every token.

    `concatenates`: the decoded text is the tokens' bytes in a row, without `prefix` if it starts with it. True for
    byte-level and SentencePiece vocabularies. Otherwise only the library can decode.
    """

    def __init__(self, core: tokenizers.Tokenizer, vocab_size: int) -> None:
        steps = _decoder_steps(core)
        kinds = [step["type"] for step in steps]
        strips = STRIP in steps or any(step.get("prepend_scheme", "never") != "never" for step in steps)
        self.prefix = " " if strips else ""
        self.concatenates = bool(steps) and (
            kinds == ["ByteLevel"]
            or all(kind in ("ByteFallback", "Fuse", "Metaspace") for kind in kinds)
            or all(step in (REPLACE, STRIP) or step["type"] in ("ByteFallback", "Fuse") for step in steps)
        )
        self.special_tokens: dict[int, str] = {}
        self._bytes = [b""] * vocab_size  # also for an id without a token
        added = core.get_added_tokens_decoder()
        alphabet = byte_alphabet() if "ByteLevel" in kinds else {}
        has_space_marks = "Metaspace" in kinds or REPLACE in steps
        for token, number in core.get_vocab().items():
            if number in added:
                self._bytes[number] = token.encode()
                if added[number].special:
                    self.special_tokens[number] = token
            elif alphabet and alphabet.keys() >= set(token):
                self._bytes[number] = bytes(alphabet[character] for character in token)
            elif "ByteFallback" in kinds and (match := BYTE_TOKEN.fullmatch(token)):
                self._bytes[number] = bytes([int(match[1], 16)])
            else:
                self._bytes[number] = (token.replace(SPACE, " ") if has_space_marks else token).encode()

    def of(self, number: int, *, skip_special_tokens: bool = True) -> bytes:
        """The bytes of a token; for a special token none, or its name if it is not skipped."""
        if not 0 <= number < len(self._bytes):
            raise InputError(f"token {number}: wanted one of 0 to {len(self._bytes) - 1}")
        return b"" if number in self.special_tokens and skip_special_tokens else self._bytes[number]


def _decoder_steps(core: tokenizers.Tokenizer) -> list[dict[str, Any]]:
    """The steps of the library's decoder; empty if it joins tokens with spaces."""
    if core.decoder is None:
        return []
    decoder = json.loads(core.decoder.__getstate__())
    return list(decoder.get("decoders", [decoder]))
