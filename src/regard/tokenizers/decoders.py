"""How tokens spell a text: what the library's decoders do, as bytes, so that text can be given while it grows."""

import json
import re
from typing import Any

import tokenizers
from regard.errors import InputError
from regard.tokenizers.byte_level import byte_alphabet

SPACE = "▁"  # a space in vocabularies that SentencePiece made
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte there, for characters that are no token
REPLACE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


class Spellings:
    """The bytes of every token.

    `whole`: a text is the bytes of its tokens one after another, less `front` where it begins with that. So it is with
    byte-level and SentencePiece vocabularies. Where it is not, the library has to decode.
    """

    def __init__(self, core: tokenizers.Tokenizer, size: int) -> None:
        steps = _steps(core)
        kinds = [step["type"] for step in steps]
        leading = STRIP in steps or any(step.get("prepend_scheme", "never") != "never" for step in steps)
        self.front = " " if leading else ""
        self.whole = bool(steps) and (
            kinds == ["ByteLevel"]
            or all(kind in ("ByteFallback", "Fuse", "Metaspace") for kind in kinds)
            or all(step in (REPLACE, STRIP) or step["type"] in ("ByteFallback", "Fuse") for step in steps)
        )
        self.specials: dict[int, str] = {}
        self._bytes = [b""] * size  # also for a number without a token
        added = core.get_added_tokens_decoder()
        alphabet = byte_alphabet() if "ByteLevel" in kinds else {}
        spaces = "Metaspace" in kinds or REPLACE in steps
        for token, number in core.get_vocab().items():
            if number in added:
                self._bytes[number] = token.encode()
                if added[number].special:
                    self.specials[number] = token
            elif alphabet and alphabet.keys() >= set(token):
                self._bytes[number] = bytes(alphabet[character] for character in token)
            elif "ByteFallback" in kinds and (match := BYTE.fullmatch(token)):
                self._bytes[number] = bytes([int(match[1], 16)])
            else:
                self._bytes[number] = (token.replace(SPACE, " ") if spaces else token).encode()

    def of(self, number: int, *, specials: bool = False) -> bytes:
        """The bytes of a token; none for a special one, or with `specials` its name."""
        if not 0 <= number < len(self._bytes):
            raise InputError(f"token {number}: wanted one of 0 to {len(self._bytes) - 1}")
        return b"" if number in self.specials and not specials else self._bytes[number]


def _steps(core: tokenizers.Tokenizer) -> list[dict[str, Any]]:
    """What the library does to make a text of tokens, step by step; nothing if it puts spaces between them."""
    if core.decoder is None:
        return []
    decoder = json.loads(core.decoder.__getstate__())
    return list(decoder.get("decoders", [decoder]))
