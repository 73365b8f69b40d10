"""Tokenizers whose tokens are single characters or single bytes: as the library has them, and the same in numpy.

The library makes an object of every character, two seconds for a megabyte; a table look-up does it in milliseconds.
"""

from collections.abc import Callable

import numpy as np

import tokenizers
from regard.errors import InputError
from regard.tokenizers.byte_level import byte_alphabet
from tokenizers import Regex, decoders, models, pre_tokenizers

END = "<|endoftext|>"


def character_core(characters: str) -> tokenizers.Tokenizer:
    """A token a character, in the order given, and the end last. A character that is not there is an error."""
    vocabulary = {character: number for number, character in enumerate(characters)}
    core = tokenizers.Tokenizer(models.WordLevel({**vocabulary, END: len(vocabulary)}))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("(?m:.)"), "isolated")  # m: the dot is a line end too
    core.decoder = decoders.Fuse()
    core.add_special_tokens([END])
    return core


def byte_core() -> tokenizers.Tokenizer:
    """A token a byte of UTF-8: 0 to 255, and 256 is the end."""
    core = tokenizers.Tokenizer(models.BPE(vocab={**byte_alphabet(), END: 256}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([END])
    return core


def fast_encoder(core: tokenizers.Tokenizer) -> Callable[[str], list[int]] | None:
    """What encodes as the library's tokenizer does, if that is one of the two above; else None."""
    if isinstance(core.model, models.WordLevel):
        characters = "".join(core.id_to_token(number) or "" for number in range(core.get_vocab_size() - 1))
        if len(set(characters)) == core.get_vocab_size() - 1 and _equal(core, character_core(characters)):
            return _character_encoder(characters)
    if isinstance(core.model, models.BPE) and core.get_vocab_size() == 257 and _equal(core, byte_core()):
        return lambda text: list(text.encode())
    return None


def _equal(one: tokenizers.Tokenizer, other: tokenizers.Tokenizer) -> bool:
    return bool(one.to_str() == other.to_str())


def _character_encoder(characters: str) -> Callable[[str], list[int]]:
    codes = _codes(characters)
    table = np.full(int(codes.max(initial=0)) + 2, -1)  # the last stands for all beyond
    table[codes] = np.arange(len(codes))

    def encode(text: str) -> list[int]:
        ids = table[np.minimum(_codes(text), len(table) - 1)]
        if (unknown := ids < 0).any():
            character = text[int(unknown.argmax())]
            raise InputError(
                f"character {character!r} (U+{ord(character):04X}) is none of the {len(codes)} this tokenizer knows; "
                "leave it out, or use a model that was trained with data.tokenizer=bpe or bytes"
            )
        found: list[int] = ids.tolist()
        return found

    return encode


def _codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
