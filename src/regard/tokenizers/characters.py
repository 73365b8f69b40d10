"""Character-level and byte-level tokenizers without merges: as `tokenizers` objects, and the same in numpy.

The library makes an object of every character, two seconds for a megabyte; a numpy lookup takes milliseconds.
"""

from collections.abc import Callable

import numpy as np
import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers

from regard.errors import InputError
from regard.tokenizers.token_bytes import byte_alphabet

EOS_TOKEN = "<|endoftext|>"


def build_character_core(characters: str) -> tokenizers.Tokenizer:
    """One token a character, in the order given, then the end-of-text token. Other characters are an error."""
    vocab = {character: number for number, character in enumerate(characters)}
    core = tokenizers.Tokenizer(models.WordLevel({**vocab, EOS_TOKEN: len(vocab)}))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("(?m:.)"), "isolated")  # m: the dot also matches a newline
    core.decoder = decoders.Fuse()
    core.add_special_tokens([EOS_TOKEN])
    return core


def build_byte_core() -> tokenizers.Tokenizer:
    """One token a byte of UTF-8: 0 to 255; 256 is the end-of-text token."""
    core = tokenizers.Tokenizer(models.BPE(vocab={**byte_alphabet(), EOS_TOKEN: 256}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([EOS_TOKEN])
    return core


def fast_encoder(core: tokenizers.Tokenizer) -> Callable[[str], list[int]] | None:
    """A numpy encoder equal to the library's, if the tokenizer is one of the two above; else None."""
    if isinstance(core.model, models.WordLevel):
        characters = "".join(core.id_to_token(number) or "" for number in range(core.get_vocab_size() - 1))
        if len(set(characters)) == core.get_vocab_size() - 1 and _are_equal(core, build_character_core(characters)):
            return _character_encoder(characters)
    if isinstance(core.model, models.BPE) and core.get_vocab_size() == 257 and _are_equal(core, build_byte_core()):
        return lambda text: list(text.encode())
    return None


def _are_equal(one: tokenizers.Tokenizer, other: tokenizers.Tokenizer) -> bool:
    return bool(one.to_str() == other.to_str())


def _character_encoder(characters: str) -> Callable[[str], list[int]]:
    codes = _code_points(characters)
    lookup = np.full(int(codes.max(initial=0)) + 2, -1)  # the last entry serves all higher code points
    lookup[codes] = np.arange(len(codes))

    def encode(text: str) -> list[int]:
        ids = lookup[np.minimum(_code_points(text), len(lookup) - 1)]
        if (unknown := ids < 0).any():
            character = text[int(unknown.argmax())]
            raise InputError(
                f"character {character!r} (U+{ord(character):04X}) is none of the {len(codes)} this tokenizer knows; "
                "remove it, or use a model that was trained with data.tokenizer=bpe or bytes"
            )
        found: list[int] = ids.tolist()
        return found

    return encode


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
