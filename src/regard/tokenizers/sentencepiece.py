"""SentencePiece tokenizers (Kudo 2018): one .model file with its own ids, or an OPUS-MT folder with a vocab.json.

In an OPUS-MT folder source.spm and target.spm segment the two languages; vocab.json numbers the tokens of both, or
target_vocab.json those of the target. T5's spiece.model numbers its tokens itself. A token that starts a word starts
with "▁". A token without an id is "<unk>".
"""

import difflib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from regard.errors import FolderError, InputError
from regard.tokenizers.bpe import EOS_TOKEN, PAD_TOKEN, UNK_TOKEN
from regard.tokenizers.metaspace import MetaspaceTokenizer

SOURCE, TARGET = "source.spm", "target.spm"
VOCAB, TARGET_VOCAB = "vocab.json", "target_vocab.json"
MODEL = "spiece.model"
TRAINER, NORMALIZER = 2, 3  # protobuf fields after the tokens; a file cut off between two tokens would still load
LANGUAGE = re.compile(r">>[^<>\s]+<<")  # target language of a multilingual model: ">>spa<< Good morning."


class SentencePieceTokenizer(MetaspaceTokenizer):
    """A tokenizer over the SentencePiece library. Make one with `load_model` (T5) or `from_folder` (OPUS-MT)."""

    def __init__(
        self,
        model: bytes,
        vocab: dict[str, int] | None = None,
        target: "SentencePieceTokenizer | None" = None,
        extra_tokens: Sequence[str] = (),
    ) -> None:
        """`vocab` maps tokens to ids; without it the model's own ids hold, followed by those of `extra_tokens`.

        FolderError, without a file name: the model cannot be read, or a special token is missing.
        """
        import sentencepiece  # takes half a second to import; only these tokenizers need it

        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.LoadFromSerializedProto(model)
            own = [self._model.id_to_piece(number) for number in range(self._model.get_piece_size())]
        except UnicodeDecodeError as error:
            raise FolderError("is damaged: a token is not UTF-8") from error
        except (RuntimeError, ValueError) as error:
            raise FolderError("cannot be read as a SentencePiece model") from error
        if not {TRAINER, NORMALIZER} <= _fields(model):
            raise FolderError("is truncated: the fields after a SentencePiece model's tokens are missing")
        self.proto = model
        self._has_own_ids = vocab is None
        if vocab is None:
            vocab = {token: number for number, token in enumerate([*own, *extra_tokens])}
        super().__init__(vocab, target, extra_tokens)
        self._languages = [token for token in vocab if LANGUAGE.fullmatch(token)]

    @classmethod
    def load_model(cls, path: Path, extra_tokens: Sequence[str] = ()) -> "SentencePieceTokenizer":
        """Read a .model file that numbers its tokens itself; `extra_tokens` get the ids after them."""
        return _read_model(path, extra_tokens=extra_tokens)

    @classmethod
    def from_folder(cls, folder: Path) -> "SentencePieceTokenizer":
        """Read an OPUS-MT folder. The result encodes the source language; its `target` the target language."""
        shared = _read_vocab(folder / VOCAB)
        separate = (folder / TARGET_VOCAB).is_file()
        target = _read_model(folder / TARGET, _read_vocab(folder / TARGET_VOCAB) if separate else shared)
        return _read_model(folder / SOURCE, shared, target)

    def to_files(self) -> dict[str, bytes]:
        """The files for `load_model` or `from_folder`."""
        if self._has_own_ids:
            return {MODEL: self.proto}
        found = {SOURCE: self.proto, TARGET: self.target.proto, VOCAB: _encode_vocab(self.vocab)}
        if self.target.vocab != self.vocab:
            found[TARGET_VOCAB] = _encode_vocab(self.target.vocab)
        return found

    def segment(self, text: str) -> list[str]:
        language, rest = self._split_language(text)
        return [*language, *self._model.encode(rest, out_type=str)]

    def _split_language(self, text: str) -> tuple[list[str], str]:
        """The language code before a text, and the rest. InputError: a multilingual model without this language."""
        match = LANGUAGE.match(text)
        if match is None or not self._languages:
            return [], text
        code = match.group()
        if code not in self._languages:
            near = difflib.get_close_matches(code, self._languages, n=3, cutoff=0.0)
            raise InputError(f"{code} is no language of this model; the nearest are {' '.join(near)}")
        return [code], text[len(code) :]


def _read_model(
    path: Path,
    vocab: dict[str, int] | None = None,
    target: SentencePieceTokenizer | None = None,
    extra_tokens: Sequence[str] = (),
) -> SentencePieceTokenizer:
    try:
        return SentencePieceTokenizer(path.read_bytes(), vocab, target, extra_tokens)
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error.strerror}; copy it from the original model") from error
    except FolderError as error:
        raise FolderError(f"{path} {error}; copy it again") from error


def _fields(proto: bytes) -> set[int]:
    """The numbers of a protobuf message's length-delimited fields, up to the first field of another type."""
    found, offset = set(), 0
    while offset < len(proto):
        key, offset = _varint(proto, offset)
        if key & 7 != 2:
            break
        found.add(key >> 3)
        size, offset = _varint(proto, offset)
        offset += size
    return found


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """A protobuf varint (seven bits a byte, lowest first), and the offset after it."""
    value = shift = 0
    while data[offset] & 128:
        value |= (data[offset] & 127) << shift
        offset, shift = offset + 1, shift + 7
    return value | data[offset] << shift, offset + 1


def _read_vocab(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read as a vocabulary: {error}") from error
    if not isinstance(found, dict) or not all(type(number) is int and number >= 0 for number in found.values()):
        raise FolderError(f"{path}: wanted a JSON object of tokens and their ids")
    for token in (EOS_TOKEN, UNK_TOKEN, PAD_TOKEN):
        if token not in found:
            raise FolderError(f"{path} has no {token}; wanted the vocabulary of a Marian model")
    return found


def _encode_vocab(vocab: dict[str, int]) -> bytes:
    return json.dumps(vocab, ensure_ascii=False, indent=2).encode()
