"""The tokenizer of BERT: WordPiece behind a small interface, with the symbols a text or a pair of texts stands between.

[CLS] the cat sat [SEP]                      one text, all of it segment 0
[CLS] the cat sat [SEP] it slept [SEP]       two, the second with its end segment 1
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import tokenizers
from regard.errors import FolderError
from regard.files import encode_json
from regard.tokenizers.bpe import check_writable
from regard.tokenizers.byte_level import whole_words
from regard.tokenizers.wordpiece_folder import KEYS, read_core, read_folder, read_vocabulary
from regard.tokenizers.wordpiece_training import INSIDE, NAMES, learned


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text or two as the model reads them; all lists go piece by piece."""

    ids: list[int]
    segment_ids: list[int]  # 0 the first text, 1 the second
    words: list[int | None]  # the number of the piece's word in its text; None: a symbol
    spans: list[tuple[int, int]]  # its characters in its text, or in its word where words were given
    cut: int  # pieces that had no room


class WordPieces:
    """Text to ids and back. Make one with `train`, `load` or `from_folder`.

    A text stands between `bos_id` and `eos_id`; `mask_id` masks a piece, if the vocabulary has one. `cased`: case is
    kept.
    """

    def __init__(self, core: tokenizers.Tokenizer, names: dict[str, str] | None = None, source: str = "") -> None:
        """`source` is what an error calls the tokenizer. FolderError: a symbol that is no piece."""
        core.no_padding()
        core.no_truncation()
        # Not kept in the file. Without it a user who types "[SEP]" would end the text.
        core.encode_special_tokens = True
        self._core = core
        self.names = {**NAMES, **(names or {})}
        source = source or "the tokenizer"
        self.size: int = 1 + max(core.get_vocab().values(), default=-1)
        self.pad_id = self._symbol("padding", source)
        self.unk_id = self._symbol("unknown", source)
        self.bos_id = self._symbol("begin", source)
        self.eos_id = self._symbol("end", source)
        self.mask_id: int | None = self.id_of(self.names["mask"])
        self.cased: bool = core.normalizer is None or core.normalizer.normalize_str("A") == "A"

    def _symbol(self, symbol: str, source: str) -> int:
        number = self.id_of(self.names[symbol])
        if number is None:
            raise FolderError(
                f"{source}: its {KEYS[symbol]} {self.names[symbol]!r} is no piece of its vocabulary; "
                "wanted a tokenizer of BERT's kind"
            )
        return number

    @classmethod
    def train(cls, texts: Iterable[str], size: int, *, cased: bool = False) -> "WordPieces":
        """Learn at most `size` pieces from the texts; the symbols are ids 0 to 4. The same texts, the same tokenizer.

        A small text may have fewer pairs worth merging than asked for; `size` then says how many there are.
        """
        return cls(learned(texts, size, cased=cased))

    @classmethod
    def load(cls, source: Path | str | bytes, *, cased: bool = False) -> "WordPieces":
        """Read a file with BERT's own symbols: a tokenizer.json, from its path or as its bytes, or a vocab.txt.

        `cased` is for a vocab.txt, which does not say whether capital letters stay. FolderError if it is neither.
        """
        if isinstance(source, bytes):
            return cls(read_core(source))
        if Path(source).suffix == ".txt":
            return cls(read_vocabulary(Path(source), cased=cased), source=str(source))
        return cls(read_core(source), source=str(source))

    @classmethod
    def from_folder(cls, folder: Path) -> "WordPieces":
        """The tokenizer of a Hugging Face folder, or of one that `files` wrote; FolderError if there is none."""
        core, names = read_folder(folder)
        return cls(core, names, str(folder))

    @classmethod
    def kept(cls, folder: Path) -> "WordPieces":
        """The tokenizer that a run or a model folder of ours keeps."""
        return cls.from_folder(folder)

    def files(self, longest: int | None = None) -> dict[str, bytes]:
        """The files `from_folder` reads; Hugging Face's AutoTokenizer reads them too, and how long a row may be."""
        facts: dict[str, Any] = {"tokenizer_class": "BertTokenizer"}
        facts |= {key: self.names[symbol] for symbol, key in KEYS.items() if self.id_of(self.names[symbol]) is not None}
        if longest is not None:
            facts["model_max_length"] = longest
        normalizer = self._core.normalizer
        if isinstance(normalizer, tokenizers.normalizers.BertNormalizer):
            facts |= {
                "do_lower_case": normalizer.lowercase,
                "strip_accents": normalizer.strip_accents,
                "tokenize_chinese_chars": normalizer.handle_chinese_chars,
            }
        return {"tokenizer.json": self.to_json().encode(), "tokenizer_config.json": encode_json(facts)}

    def to_json(self) -> str:
        """The text of the tokenizer.json: equal texts, equal tokenizers."""
        return str(self._core.to_str(pretty=True))

    # ------------------------------------------------ to ids

    def encode(
        self, text: str, second: str | None = None, *, longest: int | None = None, open: bool = False
    ) -> Encoded:
        """A text, or two, between their symbols, in at most `longest` positions.

        The name of a symbol in the text is ordinary text; `open`, it is that symbol: "the [MASK] sat". Of two texts
        that are too long the longer one gives way first, each at its end.
        """
        return self.encode_all([text], None if second is None else [second], longest=longest, open=open)[0]

    def encode_all(
        self,
        texts: Sequence[str],
        seconds: Sequence[str] | None = None,
        *,
        longest: int | None = None,
        open: bool = False,
    ) -> list[Encoded]:
        """Many texts, or pairs of them, on all cores: the same as `encode` on each."""
        firsts = self._encodings(texts, open)
        others: Iterable[tokenizers.Encoding | None] = repeat(None)
        if seconds is not None:
            assert len(texts) == len(seconds), f"{len(texts)} texts and {len(seconds)} seconds"
            others = self._encodings(seconds, open)
        return [self._between_symbols(one, other, longest) for one, other in zip(firsts, others, strict=False)]

    def encode_words(self, words: Sequence[str], *, longest: int | None = None) -> Encoded:
        """A text that is already split into words: `words[i]` of a piece is the number of its word in the list."""
        for word in words:
            check_writable(word)
        found = self._core.encode(list(words), is_pretokenized=True, add_special_tokens=False)
        return self._between_symbols(found, None, longest)

    def pieces_of(self, text: str) -> list[int]:
        """The ids of a text alone, without symbols."""
        return self.pieces_of_all([text])[0]

    def pieces_of_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, without symbols."""
        return [encoding.ids for encoding in self._encodings(texts, open=False)]

    def _encodings(self, texts: Sequence[str], open: bool) -> list[tokenizers.Encoding]:
        core = self._open_core if open else self._core
        try:
            found: list[tokenizers.Encoding] = core.encode_batch(list(texts), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            for text in texts:
                check_writable(text)
            raise
        return found

    def _between_symbols(
        self, first: tokenizers.Encoding, second: tokenizers.Encoding | None, longest: int | None
    ) -> Encoded:
        lengths = len(first), 0 if second is None else len(second)
        kept = lengths
        if longest is not None:
            special_ids = 2 if second is None else 3
            assert longest >= special_ids, f"{longest} positions are too few for {special_ids} symbols"
            kept = shared_room(*lengths, longest - special_ids)
        found = Encoded([self.bos_id], [0], [None], [(0, 0)], cut=sum(lengths) - sum(kept))
        for segment, (text, room) in enumerate(zip([first, second], kept, strict=True)):
            if text is not None:
                found.ids.extend([*text.ids[:room], self.eos_id])
                found.segment_ids.extend([segment] * (room + 1))
                found.words.extend([*text.word_ids[:room], None])
                found.spans.extend([*text.offsets[:room], (0, 0)])
        return found

    # ------------------------------------------------ and back

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, without symbols; spaces stand between words as the library puts them."""
        return str(self._core.decode(list(ids)))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A short name for each piece, for the axis of a picture: "walk", "·ing" (the word goes on), "[SEP]"."""
        names = [self.token(number) or "" for number in ids]
        return ["·" + name.removeprefix(INSIDE) if _goes_on(name) else name for name in names]

    def token(self, number: int | None) -> str | None:
        """A piece's name in the file."""
        return None if number is None else self._core.id_to_token(number)

    def id_of(self, name: str) -> int | None:
        """The number of a piece by its name in the file; None if there is no such piece."""
        found: int | None = self._core.token_to_id(name)
        return found

    def whole_words(self) -> list[str | None]:
        """The word that each piece spells by itself; None for the rest of a word, a sign and a symbol."""
        return whole_words([(self.token(number) or "").encode() for number in range(self.size)])

    @cached_property
    def special_ids(self) -> tuple[int, ...]:
        """The ids that are no text: padding, unknown, begin, end and mask."""
        found = (self.pad_id, self.unk_id, self.bos_id, self.eos_id, self.mask_id)
        return tuple(sorted({number for number in found if number is not None}))

    @cached_property
    def going_on(self) -> list[bool]:
        """Of each id, whether it goes on inside a word."""
        return [_goes_on(self.token(number) or "") for number in range(self.size)]

    @cached_property
    def _open_core(self) -> tokenizers.Tokenizer:
        """The same tokenizer, which sees symbols in the text."""
        return tokenizers.Tokenizer.from_str(self._core.to_str())


def _goes_on(name: str) -> bool:
    return name.startswith(INSIDE) and name != INSIDE


def shared_room(first: int, second: int, room: int) -> tuple[int, int]:
    """How many pieces of two texts stay: the longer gives way until both are equal; an odd place is the longer's."""
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (shorter, room - shorter) if first <= second else (room - shorter, shorter)
