"""Byte-level BPE for translation and captions (Sennrich 2016; Radford 2019), over the `tokenizers` library.

The base vocabulary is the 256 bytes, so no text is unknown. A word carries the space before it, also at the start of
the text: "cat" is the same token everywhere. Special tokens have Marian's ids, so a trained translator is a
Marian model: id 0 is `</s>`, id 1 `<unk>` (never used), and the last id `<pad>`, which also starts the decoder.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from regard.errors import ConfigError, FolderError, InputError
from regard.tokenizers.token_bytes import byte_alphabet, printable_label
from regard.tokenizers.untrusted import read_tokenizer
from regard.tokenizers.words import single_token_words, word_ids_of_tokens

EOS_TOKEN, UNK_TOKEN, PAD_TOKEN = "</s>", "<unk>", "<pad>"
MIN_VOCAB_SIZE = 256 + 3  # bytes and special tokens


class BPETokenizer:
    """Text to token ids and back. Make one with `BPETokenizer.train` or `BPETokenizer.load`."""

    eos_id = 0

    def __init__(self, core: tokenizers.Tokenizer) -> None:
        self._core = core
        self._core.no_padding()
        self._core.no_truncation()
        # Not saved in the file. Without it, "</s>" typed by a user would end the sentence.
        self._core.encode_special_tokens = True
        self._bytes = _bytes_of_tokens(core)
        self.pad_id = self.bos_id = self.vocab_size - 1

    @property
    def target(self) -> "BPETokenizer":
        """The tokenizer of the target language: the same one."""
        return self

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, whole_words: int = 0) -> "BPETokenizer":
        """Learn at most `vocab_size` tokens; the `whole_words` most frequent words get a token each.

        Deterministic: the same texts in the same order give the same tokenizer. A small text may have too few
        pairs to merge; the tokenizer's `vocab_size` is then smaller than requested. Merges alone spend many ids on
        intermediate tokens, which `whole_words` avoids.
        """
        if vocab_size - whole_words < MIN_VOCAB_SIZE:
            raise ConfigError(
                f"a vocabulary of {vocab_size} with {whole_words} whole words is too small: wanted at least "
                f"{MIN_VOCAB_SIZE + whole_words}; set a larger model.vocab_size or fewer data.whole_word_tokens"
            )
        core = tokenizers.Tokenizer(models.BPE())
        core.normalizer = normalizers.NFC()
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        core.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size - 1 - whole_words,
            min_frequency=2,  # a pair that occurs once is not a pattern
            special_tokens=[EOS_TOKEN, UNK_TOKEN],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        if whole_words:
            texts = list(texts)
        core.train_from_iterator(texts, trainer)
        if whole_words:
            _add_whole_words(core, texts, whole_words)
        core.add_special_tokens([PAD_TOKEN])  # the last id
        # For other programs that read the file; our tasks append </s> themselves.
        core.post_processor = processors.TemplateProcessing(
            single=f"$A {EOS_TOKEN}", special_tokens=[(EOS_TOKEN, cls.eos_id)]
        )
        return cls(core)

    @classmethod
    def load(cls, path: Path | str) -> "BPETokenizer":
        """Read a tokenizer.json. FolderError names a file that is damaged or not ours."""
        core = read_tokenizer(path)
        found = tuple(core.id_to_token(number) for number in (0, 1, core.get_vocab_size() - 1))
        if found != (EOS_TOKEN, UNK_TOKEN, PAD_TOKEN):
            raise FolderError(
                f"{path}: ids 0, 1 and the last are {', '.join(map(str, found))}; "
                f"wanted {EOS_TOKEN}, {UNK_TOKEN}, {PAD_TOKEN}: train it with regard"
            )
        try:
            return cls(core)
        except ValueError as error:
            raise FolderError(f"{path}: {error}; wanted a byte-level tokenizer") from error

    @classmethod
    def load_saved(cls, folder: Path) -> "BPETokenizer":
        """The tokenizer of a run or model folder."""
        return cls.load(folder / "tokenizer.json")

    def to_files(self) -> dict[str, bytes]:
        """The files `load_saved` reads."""
        return {"tokenizer.json": self.to_json().encode()}

    def to_json(self) -> str:
        """The content of the tokenizer.json: equal contents, equal tokenizers."""
        return str(self._core.to_str(pretty=True))

    @property
    def vocab_size(self) -> int:
        """Number of tokens, special tokens included."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """The token ids of a text, without special tokens. "</s>" in the text is ordinary text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts, on all cores; equal to `encode` on each."""
        try:
            encodings = self._core.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:
            for text in texts:
                check_utf8(text)
            raise
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids without special tokens; inverts `encode` up to NFC and one leading space."""
        # An incomplete character (generation stopped inside an emoji) becomes U+FFFD.
        return b"".join(self._bytes[number] for number in ids).decode("utf-8", "replace").removeprefix(" ")

    def word_ids(self, ids: Sequence[int]) -> list[int]:
        """For each token the index of its word in `split_words(decode(ids))`; -1 for special tokens and no word."""
        return word_ids_of_tokens([self._bytes[number] for number in ids])

    def single_token_words(self) -> list[str | None]:
        """For each id the word that it spells on its own, or None."""
        return single_token_words(self._bytes)

    def token_labels(self, ids: Sequence[int]) -> list[str]:
        """A short label for each token, for plots: "walk", "·ing" (continues a word), "</s>".

        The space before a word is left out; a space alone is "␣", an incomplete character its byte, such as "\\xc3".
        """
        words = self.word_ids(ids)
        before = [-1, *words][:-1]
        return [
            ("·" if word == last != -1 else "") + self._label(number)
            for number, word, last in zip(ids, words, before, strict=True)
        ]

    def _label(self, number: int) -> str:
        return printable_label(self._bytes[number]) if self._bytes[number] else str(self._core.id_to_token(number))


def _add_whole_words(core: tokenizers.Tokenizer, texts: Iterable[str], count: int) -> None:
    """Give the `count` most frequent words that are not yet in the vocabulary a token each."""
    words = Counter(
        word for text in texts for word, _ in core.pre_tokenizer.pre_tokenize_str(core.normalizer.normalize_str(text))
    )
    model = json.loads(core.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    frequent = sorted((word for word in words if word not in vocab), key=lambda word: (-words[word], word))
    vocab |= {word: len(vocab) + index for index, word in enumerate(frequent[:count])}
    merges = [tuple(pair) for pair in model["merges"]]
    core.model = models.BPE(vocab=vocab, merges=merges, ignore_merges=True)


def check_utf8(text: str) -> None:
    """InputError if the text has a lone surrogate, which UTF-8 cannot encode."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"text {text[:40]!r}: has a lone surrogate, which UTF-8 cannot encode; remove it")


def _bytes_of_tokens(core: tokenizers.Tokenizer) -> list[bytes]:
    """The bytes of each id; empty for special tokens. ValueError: a token that is not byte-level."""
    byte_of = byte_alphabet()
    result = []
    for number in range(core.get_vocab_size()):
        token = core.id_to_token(number) or "�"
        try:
            special = token in (EOS_TOKEN, UNK_TOKEN, PAD_TOKEN)
            result.append(b"" if special else bytes(byte_of[character] for character in token))
        except KeyError:
            raise ValueError(f"token {number} is {token!r}") from None
    return result
