"""The WordPiece tokenizer of BERT, with special tokens around a text or a pair of texts.

[CLS] the cat sat [SEP]                      one text, segment 0
[CLS] the cat sat [SEP] it slept [SEP]       a pair; the second text and its [SEP] are segment 1
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import FolderError, InputError
from regard.files import encode_json
from regard.tokenizers.bpe import check_utf8
from regard.tokenizers.wordpiece_folder import read_core, read_folder, read_vocab
from regard.tokenizers.wordpiece_training import CONTINUATION, SPECIAL_TOKENS, train_core
from regard.tokenizers.words import single_token_words

WORD_STARTS = "Ġ▁"  # one of them begins a word in the vocabularies of BPE and Unigram


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text or a pair as model input; each list has one entry a token."""

    ids: list[int]
    segment_ids: list[int]  # 0 the first text, 1 the second
    word_ids: list[int | None]  # index of the token's word in its text; None for special tokens
    offsets: list[tuple[int, int]]  # its characters in the text; in the word, for texts given as words
    num_truncated: int  # tokens that did not fit


class WordPieceTokenizer:
    """Text to token ids and back. Make one with `train`, `load` or `from_folder`.

    A text stands between `bos_id` ([CLS]) and `eos_id` ([SEP]). `mask_id` is None if the vocabulary has no mask
    token. `cased`: the normalizer keeps case.
    """

    def __init__(
        self, core: tokenizers.Tokenizer, special_tokens: dict[str, str] | None = None, source: str = ""
    ) -> None:
        """`source` names the tokenizer in errors. FolderError: a special token is not in the vocabulary."""
        core.no_padding()
        core.no_truncation()
        # Not saved in the file. Without it, "[SEP]" typed by a user would end the text.
        core.encode_special_tokens = True
        self._core = core
        self.special_tokens = {**SPECIAL_TOKENS, **(special_tokens or {})}
        source = source or "the tokenizer"
        self.vocab_size: int = 1 + max(core.get_vocab().values(), default=-1)
        self.pad_id = self._special_id("pad_token", source)
        self.unk_id: int | None = None
        if self._is_wordpiece or self.token_to_id(self.special_tokens["unk_token"]) is not None:  # BPE may have none
            self.unk_id = self._special_id("unk_token", source)
        self.bos_id = self._special_id("cls_token", source)
        self.eos_id = self._special_id("sep_token", source)
        self.mask_id: int | None = self.token_to_id(self.special_tokens["mask_token"])
        self.cased: bool = core.normalizer is None or core.normalizer.normalize_str("A") == "A"

    def _special_id(self, key: str, source: str) -> int:
        number = self.token_to_id(self.special_tokens[key])
        if number is None:
            raise FolderError(
                f"{source}: its {key} {self.special_tokens[key]!r} is not in its vocabulary; wanted a BERT tokenizer, "
                f"or the token's name as {key} in tokenizer_config.json"
            )
        return number

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, *, cased: bool = False) -> "WordPieceTokenizer":
        """Learn at most `vocab_size` tokens; the special tokens are ids 0 to 4. Deterministic.

        A small text may have too few pairs to merge; the tokenizer's `vocab_size` is then smaller than requested.
        """
        return cls(train_core(texts, vocab_size, cased=cased))

    @classmethod
    def load(cls, source: Path | str | bytes, *, cased: bool = False) -> "WordPieceTokenizer":
        """Read a tokenizer.json (path or bytes) or a vocab.txt that uses BERT's special tokens.

        `cased` applies to a vocab.txt, which does not say it itself. FolderError: neither of the two.
        """
        if isinstance(source, bytes):
            return cls(read_core(source))
        if Path(source).suffix == ".txt":
            return cls(read_vocab(Path(source), cased=cased), source=str(source))
        return cls(read_core(source), source=str(source))

    @classmethod
    def from_folder(cls, folder: Path) -> "WordPieceTokenizer":
        """Read a Hugging Face folder, or a folder with the files of `to_files`. FolderError: no tokenizer in it."""
        core, special_tokens = read_folder(folder)
        return cls(core, special_tokens, str(folder))

    @classmethod
    def load_saved(cls, folder: Path) -> "WordPieceTokenizer":
        """Read the tokenizer of our run or model folder."""
        return cls.from_folder(folder)

    def to_files(self, max_length: int | None = None) -> dict[str, bytes]:
        """The files for `from_folder`; Hugging Face's AutoTokenizer reads them and `max_length` too."""
        config: dict[str, Any] = {"tokenizer_class": "BertTokenizer"}
        config |= {key: token for key, token in self.special_tokens.items() if self.token_to_id(token) is not None}
        if max_length is not None:
            config["model_max_length"] = max_length
        normalizer = self._core.normalizer
        if isinstance(normalizer, tokenizers.normalizers.BertNormalizer):
            config |= {
                "do_lower_case": normalizer.lowercase,
                "strip_accents": normalizer.strip_accents,
                "tokenize_chinese_chars": normalizer.handle_chinese_chars,
            }
        return {"tokenizer.json": self.to_json().encode(), "tokenizer_config.json": encode_json(config)}

    def to_json(self) -> str:
        """The content of the tokenizer.json: equal contents, equal tokenizers."""
        return str(self._core.to_str(pretty=True))

    # ------------------------------------------------ encode

    def encode(
        self,
        text: str,
        second: str | None = None,
        *,
        max_length: int | None = None,
        parse_special_tokens: bool = False,
    ) -> Encoding:
        """Encode a text or a pair with special tokens, in at most `max_length` positions.

        The name of a special token in the text is ordinary text. With `parse_special_tokens` it is that token:
        "the [MASK] sat". A pair that is too long loses tokens from the end of its longer text first.
        """
        seconds = None if second is None else [second]
        return self.encode_batch([text], seconds, max_length=max_length, parse_special_tokens=parse_special_tokens)[0]

    def encode_batch(
        self,
        texts: Sequence[str],
        seconds: Sequence[str] | None = None,
        *,
        max_length: int | None = None,
        parse_special_tokens: bool = False,
    ) -> list[Encoding]:
        """Encode many texts or pairs, on all cores; equal to `encode` on each."""
        firsts = self._encodings(texts, parse_special_tokens)
        others: Iterable[tokenizers.Encoding | None] = repeat(None)
        if seconds is not None:
            assert len(texts) == len(seconds), f"{len(texts)} texts and {len(seconds)} seconds"
            others = self._encodings(seconds, parse_special_tokens)
        return [self._add_special_tokens(one, other, max_length) for one, other in zip(firsts, others, strict=False)]

    def encode_words(self, words: Sequence[str], *, max_length: int | None = None) -> Encoding:
        """Encode a text that is already split into words: `word_ids` are indices into `words`."""
        for word in words:
            check_utf8(word)
        found = self._core.encode(list(words), is_pretokenized=True, add_special_tokens=False)
        return self._add_special_tokens(found, None, max_length)

    def encode_ids(self, text: str) -> list[int]:
        """The token ids of a text, without special tokens."""
        return self.encode_ids_batch([text])[0]

    def encode_ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts, without special tokens."""
        return [encoding.ids for encoding in self._encodings(texts, parse_special_tokens=False)]

    def _encodings(self, texts: Sequence[str], parse_special_tokens: bool) -> list[tokenizers.Encoding]:
        core = self._parsing_core if parse_special_tokens else self._core
        try:
            found: list[tokenizers.Encoding] = core.encode_batch(list(texts), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            for text in texts:
                check_utf8(text)
            raise
        except Exception as error:  # the library's own: it has no tokens for a text, say
            raise InputError(f"this tokenizer cannot encode the text: {' '.join(str(error).split())}") from error
        return found

    def _add_special_tokens(
        self, first: tokenizers.Encoding, second: tokenizers.Encoding | None, max_length: int | None
    ) -> Encoding:
        lengths = len(first), 0 if second is None else len(second)
        kept = lengths
        if max_length is not None:
            num_special = 2 if second is None else 3
            assert max_length >= num_special, f"{max_length} positions are too few for {num_special} special tokens"
            kept = truncated_lengths(*lengths, max_length - num_special)
        found = Encoding([self.bos_id], [0], [None], [(0, 0)], num_truncated=sum(lengths) - sum(kept))
        for segment, (text, length) in enumerate(zip([first, second], kept, strict=True)):
            if text is not None:
                found.ids.extend([*text.ids[:length], self.eos_id])
                found.segment_ids.extend([segment] * (length + 1))
                found.word_ids.extend([*text.word_ids[:length], None])
                found.offsets.extend([*text.offsets[:length], (0, 0)])
        return found

    # ------------------------------------------------ decode

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, without special tokens; the library puts the spaces between words."""
        return str(self._core.decode(list(ids)))

    def token_labels(self, ids: Sequence[int]) -> list[str]:
        """A short label for each token, for plots: "walk", "·ing" (continues a word), "[SEP]"."""
        names = [self.id_to_token(number) or "" for number in ids]
        if not self._is_wordpiece:
            return [name.lstrip(WORD_STARTS) or name for name in names]
        return ["·" + name.removeprefix(CONTINUATION) if _is_continuation(name) else name for name in names]

    def id_to_token(self, number: int | None) -> str | None:
        """A token's name in the vocabulary."""
        return None if number is None else self._core.id_to_token(number)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token by its name in the vocabulary; None if there is no such token."""
        found: int | None = self._core.token_to_id(token)
        return found

    def single_token_words(self) -> list[str | None]:
        """The word that each token spells on its own; None for continuations, punctuation and special tokens."""
        names = [self.id_to_token(number) or "" for number in range(self.vocab_size)]
        if not self._is_wordpiece:
            names = [
                "" if inside else name.lstrip(WORD_STARTS)
                for name, inside in zip(names, self.is_continuation, strict=True)
            ]
        return single_token_words([name.encode() for name in names])

    @cached_property
    def special_ids(self) -> tuple[int, ...]:
        """The ids that are not text: padding, unknown, [CLS], [SEP] and mask."""
        found = (self.pad_id, self.unk_id, self.bos_id, self.eos_id, self.mask_id)
        return tuple(sorted({number for number in found if number is not None}))

    @cached_property
    def is_continuation(self) -> list[bool]:
        """For each id, whether the token continues a word."""
        names = [self.id_to_token(number) or "" for number in range(self.vocab_size)]
        if self._is_wordpiece:
            return [_is_continuation(name) for name in names]
        marks_starts = any(name.startswith(tuple(WORD_STARTS)) and len(name) > 1 for name in names)
        special = {*self.special_ids}
        return [
            marks_starts and not name.startswith(tuple(WORD_STARTS)) and number not in special
            for number, name in enumerate(names)
        ]

    @property
    def _is_wordpiece(self) -> bool:
        return isinstance(self._core.model, tokenizers.models.WordPiece)

    @cached_property
    def _parsing_core(self) -> tokenizers.Tokenizer:
        """The same tokenizer, which parses special tokens in the text."""
        return tokenizers.Tokenizer.from_str(self._core.to_str())


def _is_continuation(name: str) -> bool:
    return name.startswith(CONTINUATION) and name != CONTINUATION


def truncated_lengths(first: int, second: int, limit: int) -> tuple[int, int]:
    """Lengths of a pair cut to `limit` tokens: the longer text is cut until both are equal; it keeps an odd token."""
    if first + second <= limit:
        return first, second
    shorter = min(first, second, limit // 2)
    return (shorter, limit - shorter) if first <= second else (limit - shorter, shorter)


def encode_in_rows(
    tokenizer: WordPieceTokenizer, words: Sequence[str], max_length: int, start: int = 0
) -> Iterator[tuple[int, Encoding]]:
    """Encode a sentence of words as one or more rows of at most `max_length` positions, with their first word's index.

    A row that is too long is halved until it fits. A single word that is too long is truncated.
    """
    found = tokenizer.encode_words(words, max_length=max_length)
    if not found.num_truncated or len(words) == 1:
        yield start, found
        return
    middle = len(words) // 2
    yield from encode_in_rows(tokenizer, words[:middle], max_length, start)
    yield from encode_in_rows(tokenizer, words[middle:], max_length, start + middle)


def first_token_positions(row: Encoding) -> dict[int, int]:
    """Word index to the position of its first token. A word without tokens, such as a lone accent, has no entry."""
    found: dict[int, int] = {}
    for position, word in enumerate(row.word_ids):
        if word is not None:
            found.setdefault(word, position)
    return found
