"""Byte-level BPE (Sennrich 2016; Radford 2019), a thin class over the `tokenizers` library.

The alphabet is the 256 bytes, so no text is ever unknown. A word carries the space before it, also at the
beginning of the text: "cat" is the same token wherever it stands. The specials stand where Marian has them, so that
a trained translator is a Marian model as it is: id 0 is the end, 1 is "<unk>" (never used: no text is unknown), and the
last one is padding, which a decoder is also given first.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers
from regard.errors import ConfigError, FolderError, InputError
from regard.tokenizers.byte_level import WORD, byte_alphabet, visible, whole_words, words_of_tokens
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"
SMALLEST = 256 + 3  # the bytes and the specials


def split_words(text: str) -> list[str]:
    """The words of a text: runs of letters, digits and underscores; every other visible character alone."""
    return WORD.findall(text)


def by_spaces(text: str) -> list[int]:
    """For each word of `split_words(text)` the number of the word between spaces that it stands in."""
    return [len(text[: match.start() + 1].split()) - 1 for match in WORD.finditer(text)]


class Tokenizer:
    """Text to ids and back. Make one with `Tokenizer.train` or `Tokenizer.load`."""

    eos_id = 0

    def __init__(self, core: tokenizers.Tokenizer) -> None:
        self._core = core
        self._core.no_padding()
        self._core.no_truncation()
        # Not kept in the file. Without it a user who types "</s>" would end the sentence.
        self._core.encode_special_tokens = True
        self._bytes = _bytes_of_tokens(core)
        self.pad_id = self.bos_id = self.size - 1

    @property
    def target(self) -> "Tokenizer":
        """The words of the other side of a pair: the same ones."""
        return self

    @classmethod
    def train(cls, texts: Iterable[str], size: int, whole_words: int = 0) -> "Tokenizer":
        """Learn at most `size` tokens from the texts, the commonest `whole_words` of the words among them.

        The same texts in the same order: the same tokenizer. A small text may have fewer pairs worth merging than
        asked for; `size` then says how many there are. Merging alone fills many places with steps on the way to a word.
        """
        if size - whole_words < SMALLEST:
            raise ConfigError(
                f"a vocabulary of {size} with {whole_words} whole words; wanted at least {SMALLEST} more than these, "
                "for the bytes and the specials: a larger model.vocab_size or fewer data.whole_words"
            )
        core = tokenizers.Tokenizer(models.BPE())
        core.normalizer = normalizers.NFC()
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        core.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(
            vocab_size=size - 1 - whole_words,
            min_frequency=2,  # a pair seen once is no pattern
            special_tokens=[END, UNKNOWN],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        if whole_words:
            texts = list(texts)
        core.train_from_iterator(texts, trainer)
        if whole_words:
            _keep_whole(core, texts, whole_words)
        core.add_special_tokens([PADDING])  # at the end
        # For other readers of the file; here a task closes its sentences itself.
        core.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, cls.eos_id)])
        return cls(core)

    @classmethod
    def load(cls, path: Path | str) -> "Tokenizer":
        """Read a tokenizer.json. A damaged or foreign file: FolderError, one line that names it."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            core = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception for a file it cannot read
            reason = " ".join(str(error).split())
            raise FolderError(f"{path}: cannot be read as a tokenizer.json ({reason})") from error
        found = tuple(core.id_to_token(number) for number in (0, 1, core.get_vocab_size() - 1))
        if found != (END, UNKNOWN, PADDING):
            raise FolderError(
                f"{path}: ids 0, 1 and the last are {', '.join(map(str, found))}; "
                f"wanted {END}, {UNKNOWN}, {PADDING}: train it with regard"
            )
        try:
            return cls(core)
        except ValueError as error:
            raise FolderError(f"{path}: {error}; wanted a byte-level tokenizer") from error

    def to_json(self) -> str:
        """The text of the tokenizer.json: equal texts, equal tokenizers."""
        return str(self._core.to_str(pretty=True))

    @property
    def size(self) -> int:
        """How many tokens there are, the specials included."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without begin and end. A special's name in the text is ordinary text."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, on all cores: the same as `encode` on each."""
        try:
            encodings = self._core.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:
            for text in texts:
                check_writable(text)
            raise
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, specials left out: `encode` undone, up to NFC and one leading space."""
        # Half a character (a model stopped in the middle of an emoji) becomes U+FFFD.
        return b"".join(self._bytes[number] for number in ids).decode("utf-8", "replace").removeprefix(" ")

    def words(self, ids: Sequence[int]) -> list[int]:
        """For each token the index of its word in `split_words(decode(ids))`; -1 for a special or no word."""
        return words_of_tokens([self._bytes[number] for number in ids])

    def whole_words(self) -> list[str | None]:
        """For each id the word that it spells by itself, if it does."""
        return whole_words(self._bytes)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A short name for each token, for the axis of a picture: "walk", "·ing" (the word goes on), "</s>".

        The space before a word is left out; a space alone is "␣", half a character its byte, as in "\\xc3".
        """
        words = self.words(ids)
        before = [-1, *words][:-1]
        return [
            ("·" if word == last != -1 else "") + self._name(number)
            for number, word, last in zip(ids, words, before, strict=True)
        ]

    def _name(self, number: int) -> str:
        return visible(self._bytes[number]) if self._bytes[number] else str(self._core.id_to_token(number))


def _keep_whole(core: tokenizers.Tokenizer, texts: Iterable[str], count: int) -> None:
    """Give the commonest words that merging would cut a token each."""
    words = Counter(
        word for text in texts for word, _ in core.pre_tokenizer.pre_tokenize_str(core.normalizer.normalize_str(text))
    )
    model = json.loads(core.to_str())["model"]
    vocabulary: dict[str, int] = model["vocab"]
    common = sorted((word for word in words if word not in vocabulary), key=lambda word: (-words[word], word))
    vocabulary |= {word: len(vocabulary) + place for place, word in enumerate(common[:count])}
    merges = [tuple(pair) for pair in model["merges"]]
    core.model = models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True)


def check_writable(text: str) -> None:
    """InputError for half of a surrogate pair, which no file of text can hold."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"text {text[:40]!r}: got half of a surrogate pair, wanted text that UTF-8 can write")


def _bytes_of_tokens(core: tokenizers.Tokenizer) -> list[bytes]:
    """What each id stands for; nothing for the specials. ValueError: a token that is not made of bytes."""
    byte_of = byte_alphabet()
    result = []
    for number in range(core.get_vocab_size()):
        token = core.id_to_token(number) or "�"
        try:
            special = token in (END, UNKNOWN, PADDING)
            result.append(b"" if special else bytes(byte_of[character] for character in token))
        except KeyError:
            raise ValueError(f"token {number} is {token!r}") from None
    return result
