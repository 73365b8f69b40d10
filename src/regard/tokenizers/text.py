"""The tokenizer of a language model: reads any tokenizer.json, and makes new ones in three ways.

    characters    one token a character of the text
    bytes         one token a byte of UTF-8
    train         byte-level BPE with GPT-2's pre-tokenizer (Sennrich 2016; Radford 2019)

These three do not normalize: decoding an encoded text gives the same characters, white space included.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from regard.errors import ConfigError, InputError
from regard.files import encode_json
from regard.tokenizers.boundaries import PART_CHARACTERS, cut_at_spaces, is_cut_at_spaces
from regard.tokenizers.bpe import check_utf8
from regard.tokenizers.characters import EOS_TOKEN, build_byte_core, build_character_core, fast_encoder
from regard.tokenizers.text_folder import read_folder
from regard.tokenizers.token_bytes import TokenBytes, printable_label
from regard.tokenizers.untrusted import read_tokenizer
from regard.tokenizers.words import single_token_words, word_ids_of_tokens

MIN_VOCAB_SIZE = 256 + 1  # bytes and end of text
PARTS_AT_ONCE = 64  # of long texts, in memory as the library's objects: about 40 MB
Raw = bytes  # inside the class, `bytes` is a constructor


class TextTokenizer:
    """Text to token ids and back. Make one with `characters`, `bytes`, `train`, `load` or `from_folder`.

    `bos_id` starts a text and `eos_id` ends a document, if the model has them. Generation stops at any of `eos_ids`;
    `eos_id` is the first of them. `chat_template` is None for a model without one.
    """

    def __init__(
        self,
        core: tokenizers.Tokenizer,
        *,
        bos_id: int | None = None,
        eos_ids: Sequence[int] = (),
        chat_template: str | None = None,
    ) -> None:
        core.no_padding()
        core.no_truncation()
        # Not saved in the file. Without it, "<|endoftext|>" typed by a user would end the text.
        core.encode_special_tokens = True
        self._core = core
        self._fast: Callable[[str], list[int]] | None = fast_encoder(core)
        self.vocab_size: int = 1 + max(core.get_vocab().values(), default=-1)
        self.bos_id = bos_id
        self.eos_ids = tuple(dict.fromkeys(eos_ids))
        self.chat_template = chat_template

    @classmethod
    def characters(cls, texts: Iterable[str]) -> "TextTokenizer":
        """One token a character that occurs in the texts, in code point order; the last id is the end of text."""
        found: set[str] = set()
        for text in texts:
            check_utf8(text)
            found.update(text)
        return cls(build_character_core("".join(sorted(found))), eos_ids=[len(found)])

    @classmethod
    def bytes(cls) -> "TextTokenizer":
        """One token a byte, and the end of text: 257 tokens."""
        return cls(build_byte_core(), eos_ids=[256])

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "TextTokenizer":
        """Learn at most `vocab_size` tokens; id 0 is the end of text. Deterministic.

        A small text may have too few pairs to merge; the tokenizer's `vocab_size` is then smaller than requested.
        """
        if vocab_size < MIN_VOCAB_SIZE:
            raise ConfigError(
                f"a vocabulary of {vocab_size}; wanted at least {MIN_VOCAB_SIZE}, for the bytes and the end of text: "
                "model.vocab_size=4096"
            )
        core = tokenizers.Tokenizer(models.BPE())
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,  # a pair that occurs once is not a pattern
            special_tokens=[EOS_TOKEN],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        # The library reads 256 texts ahead; long ones would fill memory. The parts have the same words.
        core.train_from_iterator((part for text in texts for part in cut_at_spaces(text)), trainer)
        return cls(core, eos_ids=[0])

    @classmethod
    def load(cls, source: Path | str | Raw) -> "TextTokenizer":
        """Read a tokenizer.json from its path or its bytes; "<|endoftext|>" is the eos token if it is a token.

        FolderError names a file that cannot be read. Other bos and eos tokens are named in the files beside it, which
        `from_folder` reads.
        """
        core = read_tokenizer(source)
        eos_id = core.token_to_id(EOS_TOKEN)
        return cls(core, eos_ids=[] if eos_id is None else [eos_id])

    @classmethod
    def from_folder(cls, folder: Path) -> "TextTokenizer":
        """Read a Hugging Face folder, or a folder with the files of `to_files`. FolderError: no tokenizer in it."""
        core, bos_id, eos_ids, chat_template = read_folder(folder)
        return cls(core, bos_id=bos_id, eos_ids=eos_ids, chat_template=chat_template)

    @classmethod
    def load_saved(cls, folder: Path) -> "TextTokenizer":
        """Read the tokenizer of our run or model folder; old folders have only a tokenizer.json."""
        whole = (folder / "tokenizer_config.json").is_file()
        return cls.from_folder(folder) if whole else cls.load(folder / "tokenizer.json")

    def to_files(self) -> dict[str, Raw]:
        """The files for `from_folder`; Hugging Face's AutoTokenizer reads them too."""
        config: dict[str, Any] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": self.id_to_token(self.bos_id),
            "eos_token": self.id_to_token(self.eos_id),
            "clean_up_tokenization_spaces": False,
        }
        if len(self.eos_ids) > 1:
            config["eos_token_id"] = list(self.eos_ids)
        if self.chat_template is not None:
            config["chat_template"] = self.chat_template
        return {"tokenizer.json": self.to_json().encode(), "tokenizer_config.json": encode_json(config)}

    def to_json(self) -> str:
        """The content of the tokenizer.json: equal contents, equal tokenizers."""
        return str(self._core.to_str(pretty=True))

    @property
    def eos_id(self) -> int | None:
        return self.eos_ids[0] if self.eos_ids else None

    @property
    def prepended_bos_id(self) -> int | None:
        """The bos id if the tokenizer.json prepends it to every text, as the model was then trained; else None."""
        before = self._core.encode("", add_special_tokens=True).ids[:1]
        return self.bos_id if before == [self.bos_id] else None

    def encode(self, text: str, *, parse_special_tokens: bool = False) -> list[int]:
        """The token ids of a text, without bos and eos.

        The name of a special token in the text is ordinary text. With `parse_special_tokens` it is that token, as
        chat templates need.
        """
        if not parse_special_tokens:
            return self.encode_batch([text])[0]
        check_utf8(text)
        if self._fast:
            first, *others = (self._fast(part) for part in text.split(EOS_TOKEN))
            return first + [number for part in others for number in (self.vocab_size - 1, *part)]
        found: list[int] = self._parsing_core.encode(text, add_special_tokens=False).ids
        return found

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts, on all cores; equal to `encode` on each."""
        try:
            if self._fast:
                return [self._fast(text) for text in texts]
            if any(len(text) > 2 * PART_CHARACTERS for text in texts) and self._is_cut_at_spaces:
                return self._encode_in_parts(texts)
            return [encoding.ids for encoding in self._core.encode_batch_fast(texts, add_special_tokens=False)]
        except (TypeError, UnicodeEncodeError):
            for text in texts:
                check_utf8(text)
            raise
        except Exception as error:  # the library's own: it has no tokens for a text, say
            raise InputError(f"this tokenizer cannot encode the text: {' '.join(str(error).split())}") from error

    def _encode_in_parts(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for long texts: parts on all cores, and a few at a time in memory."""
        found: list[list[int]] = [[] for _ in texts]
        parts = ((ids, part) for ids, text in zip(found, texts, strict=True) for part in cut_at_spaces(text))
        while several := list(islice(parts, PARTS_AT_ONCE)):
            encodings = self._core.encode_batch_fast([part for _, part in several], add_special_tokens=False)
            for (ids, _), encoding in zip(several, encodings, strict=True):
                ids += encoding.ids
        return found

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True, continuing: bool = False) -> str:
        """The text of the ids; an incomplete character (generation stopped inside an emoji) becomes U+FFFD.

        Special tokens are skipped unless `skip_special_tokens` is False. With `continuing`, the text continues
        another one and keeps its leading space, which at the start of a text is only SentencePiece's word mark.
        """
        raw = b"".join([self.token_bytes.of(number, skip_special_tokens=skip_special_tokens) for number in ids])
        if not self.token_bytes.concatenates:
            return str(self._core.decode(list(ids), skip_special_tokens=skip_special_tokens))
        text = raw.decode("utf-8", "replace")
        return text if continuing else text.removeprefix(self.token_bytes.prefix)

    @cached_property
    def token_bytes(self) -> TokenBytes:
        """The bytes of each token."""
        return TokenBytes(self._core, self.vocab_size)

    def single_token_words(self) -> list[str | None]:
        """For each id the word that it spells on its own, or None; a single letter counts as a word."""
        return single_token_words([self.token_bytes.of(number) for number in range(self.vocab_size)])

    def token_labels(self, ids: Sequence[int]) -> list[str]:
        """A short label for each token, for plots: "walk", "·ing" (continues a word), "<|endoftext|>".

        The space before a word is left out; a space alone is "␣", an incomplete character its byte, such as "\\xc3".
        Character-level and byte-level tokenizers mark no continuations.
        """
        raws = [self.token_bytes.of(number) for number in ids]
        labels = [
            printable_label(raw) if raw else self.id_to_token(number) or ""
            for number, raw in zip(ids, raws, strict=True)
        ]
        if self._fast:
            return labels
        words = word_ids_of_tokens(raws)
        continues = [
            word == before != -1 and not raw[-1:].isspace()  # white space belongs to the next word
            for word, before, raw in zip(words[1:], words, raws, strict=False)
        ]
        return [f"·{label}" if on else label for label, on in zip(labels, [False, *continues], strict=False)]

    def id_to_token(self, number: int | None) -> str | None:
        """A token's name in the tokenizer.json."""
        return None if number is None else self._core.id_to_token(number)

    def tokens(self) -> dict[str, int]:
        """Each token's name in the tokenizer.json, and its id."""
        found: dict[str, int] = self._core.get_vocab()
        return found

    @cached_property
    def _is_cut_at_spaces(self) -> bool:
        return is_cut_at_spaces(self._core)

    @cached_property
    def _parsing_core(self) -> tokenizers.Tokenizer:
        """The same tokenizer, which parses special tokens in the text."""
        return tokenizers.Tokenizer.from_str(self._core.to_str())
