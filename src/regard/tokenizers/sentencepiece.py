"""The tokenizer of OPUS-MT folders: SentencePiece cuts the text, a vocabulary numbers the pieces (Kudo 2018).

source.spm and target.spm cut the two languages; vocab.json numbers the pieces of both, or target_vocab.json those of
the target. A piece that begins a word begins with "▁". A piece without a number is "<unk>".
"""

import difflib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from regard.errors import FolderError, InputError
from regard.tokenizers.bpe import END, PADDING, UNKNOWN, check_writable
from regard.tokenizers.byte_level import WORD, whole_words

SPACE = "▁"
SOURCE, TARGET = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TRAINER, NORMALIZER = 2, 3  # fields behind the pieces; cut off between two pieces, a file would still be read
LANGUAGE = re.compile(r">>[^<>\s]+<<")  # what many-to-many models are given first: ">>spa<< Good morning."


class SentencePieces:
    """One side of a pair; `target` is the other side."""

    def __init__(self, model: bytes, numbers: dict[str, int], target: "SentencePieces | None" = None) -> None:
        """`numbers` is the vocabulary. Broken model: FolderError without a file's name."""
        import sentencepiece  # half a second of a library that only these folders need

        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.LoadFromSerializedProto(model)
        except (RuntimeError, ValueError) as error:
            raise FolderError("cannot be read as a SentencePiece model") from error
        if not {TRAINER, NORMALIZER} <= _fields(model):
            raise FolderError("is cut off: what a SentencePiece model has behind its pieces is missing")
        self.proto = model
        self.numbers = numbers
        self._pieces = {number: piece for piece, number in numbers.items()}
        self.eos_id, self._unknown = numbers[END], numbers[UNKNOWN]
        self.pad_id = self.bos_id = numbers[PADDING]
        self.target = target or self
        self._codes = [piece for piece in numbers if LANGUAGE.fullmatch(piece)]

    @classmethod
    def load(cls, folder: Path) -> "SentencePieces":
        """The pair of a folder, as its source side."""
        shared = _vocabulary(folder / VOCABULARY)
        separate = (folder / TARGET_VOCABULARY).is_file()
        target = _one(folder / TARGET, _vocabulary(folder / TARGET_VOCABULARY) if separate else shared)
        return _one(folder / SOURCE, shared, target)

    def files(self) -> dict[str, bytes]:
        """The files `load` reads."""
        found = {SOURCE: self.proto, TARGET: self.target.proto, VOCABULARY: _encode(self.numbers)}
        if self.target.numbers != self.numbers:
            found[TARGET_VOCABULARY] = _encode(self.target.numbers)
        return found

    @property
    def size(self) -> int:
        """How many ids there are: one more than the highest."""
        return max(self._pieces) + 1

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without begin and end."""
        check_writable(text)
        code, rest = self._language(text)
        return [self.numbers.get(piece, self._unknown) for piece in [*code, *self._model.encode(rest, out_type=str)]]

    def _language(self, text: str) -> tuple[list[str], str]:
        """The code in front of a text, and the rest; a model that knows codes refuses one it does not know."""
        match = LANGUAGE.match(text)
        if match is None or not self._codes:
            return [], text
        code = match.group()
        if code not in self._codes:
            near = difflib.get_close_matches(code, self._codes, n=3, cutoff=0.0)
            raise InputError(f"{code} is no language of this model; the nearest are {' '.join(near)}")
        return [code], text[len(code) :]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; end and padding are left out, an unknown piece is "⁇"."""
        return "".join(self._text(number) for number in ids).removeprefix(" ")

    def words(self, ids: Sequence[int]) -> list[int]:
        """For each token the index of its word in `split_words(decode(ids))`; -1 for a special or no word."""
        texts = [self._text(number) for number in ids]
        whole = "".join(texts)
        begins = [match.start() for match in WORD.finditer(whole)]
        result, start = [], 0
        for text in texts:
            first = start + len(text) - len(text.lstrip())
            before = sum(begin <= first for begin in begins)
            result.append(before - 1 if text and begins else -1)
            start += len(text)
        return result

    def whole_words(self) -> list[str | None]:
        """For each id the word that it spells by itself, if it does."""
        return whole_words([self._text(number).encode() for number in range(self.size)])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A short name for each token, for the axis of a picture: "walk", "·ing" (the word goes on), "</s>"."""
        return [self._name(number) for number in ids]

    def _name(self, number: int) -> str:
        piece = self._pieces.get(number, UNKNOWN)
        if piece in (END, PADDING, UNKNOWN):
            return piece
        return piece.removeprefix(SPACE) or "␣" if piece.startswith(SPACE) else f"·{piece}"

    def _text(self, number: int) -> str:
        piece = self._pieces.get(number, UNKNOWN)
        if piece in (END, PADDING):
            return ""
        return "⁇" if piece == UNKNOWN else piece.replace(SPACE, " ")


def _one(path: Path, numbers: dict[str, int], target: SentencePieces | None = None) -> SentencePieces:
    try:
        return SentencePieces(path.read_bytes(), numbers, target)
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error.strerror}; an OPUS-MT folder has it") from error
    except FolderError as error:
        raise FolderError(f"{path} {error}; copy it again") from error


def _fields(proto: bytes) -> set[int]:
    """The numbers of the fields of a protobuf message that are messages or texts, up to one of another kind."""
    found, place = set(), 0
    while place < len(proto):
        key, place = _varint(proto, place)
        if key & 7 != 2:
            break
        found.add(key >> 3)
        size, place = _varint(proto, place)
        place += size
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in bytes of seven bits, the lowest first, and the place behind it."""
    value = shift = 0
    while data[place] & 128:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1


def _vocabulary(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read as a vocabulary: {error}") from error
    if not isinstance(found, dict) or not all(type(number) is int and number >= 0 for number in found.values()):
        raise FolderError(f"{path}: wanted a JSON object of pieces and their numbers")
    for special in (END, UNKNOWN, PADDING):
        if special not in found:
            raise FolderError(f"{path} has no {special}; wanted the vocabulary of a Marian model")
    return found


def _encode(numbers: dict[str, int]) -> bytes:
    return json.dumps(numbers, ensure_ascii=False, indent=2).encode()
