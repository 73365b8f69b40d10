"""The tokenizer of a language model: any tokenizer.json behind a small interface, and three ways to make one.

    characters    a token a character of the text
    bytes         a token a byte of UTF-8
    train         byte-level BPE with GPT-2's pattern (Sennrich 2016; Radford 2019)

Nothing is done to the text: what these three encode they decode to the character, spaces and line ends included.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from regard.errors import ConfigError, FolderError
from regard.files import encode_json
from regard.tokenizers.bpe import check_writable
from regard.tokenizers.byte_level import visible, whole_words, words_of_tokens
from regard.tokenizers.characters import END, byte_core, character_core, fast_encoder
from regard.tokenizers.decoders import Spellings
from regard.tokenizers.folder import read_folder
from tokenizers import decoders, models, pre_tokenizers, trainers

SMALLEST = 256 + 1  # the bytes and the end
Raw = bytes  # inside the class this name is a way to make one


class TextTokenizer:
    """Text to ids and back. Make one with `characters`, `bytes`, `train`, `load` or `from_folder`.

    `bos_id` starts a text and `eos_id` ends a document, where the model has them; generation stops at any of `ends`,
    of which `eos_id` is the first. `template` is the chat template, if there is one.
    """

    def __init__(
        self,
        core: tokenizers.Tokenizer,
        *,
        bos_id: int | None = None,
        ends: Sequence[int] = (),
        template: str | None = None,
    ) -> None:
        core.no_padding()
        core.no_truncation()
        # Not kept in the file. Without it a user who types "<|endoftext|>" would end the text.
        core.encode_special_tokens = True
        self._core = core
        self._fast: Callable[[str], list[int]] | None = fast_encoder(core)
        self.size: int = 1 + max(core.get_vocab().values(), default=-1)
        self.bos_id = bos_id
        self.ends = tuple(dict.fromkeys(ends))
        self.template = template

    @classmethod
    def characters(cls, texts: Iterable[str]) -> "TextTokenizer":
        """A token a character that occurs in the texts, in the order of their numbers, and the end last."""
        found: set[str] = set()
        for text in texts:
            check_writable(text)
            found.update(text)
        return cls(character_core("".join(sorted(found))), ends=[len(found)])

    @classmethod
    def bytes(cls) -> "TextTokenizer":
        """A token a byte, and the end: 257."""
        return cls(byte_core(), ends=[256])

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> "TextTokenizer":
        """Learn at most `size` tokens from the texts; id 0 is the end. The same texts, the same tokenizer.

        A small text may have fewer pairs worth merging than asked for; `size` then says how many there are.
        """
        if size < SMALLEST:
            raise ConfigError(
                f"a vocabulary of {size}; wanted at least {SMALLEST}, for the bytes and the end: model.vocab_size=4096"
            )
        core = tokenizers.Tokenizer(models.BPE())
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,  # a pair seen once is no pattern
            special_tokens=[END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        core.train_from_iterator(texts, trainer)
        return cls(core, ends=[0])

    @classmethod
    def load(cls, source: Path | str | Raw) -> "TextTokenizer":
        """Read a tokenizer.json, from its path or as its bytes; "<|endoftext|>" is the end if it is a token.

        A damaged or foreign file: FolderError, one line that names it. What else may begin or end a text stands in
        the files beside it, where `from_folder` finds it.
        """
        try:
            content = source if isinstance(source, bytes) else Path(source).read_bytes()
            core = tokenizers.Tokenizer.from_str(content.decode())
        except Exception as error:  # the library raises bare Exception for a file it cannot read
            name = "the tokenizer" if isinstance(source, bytes) else source
            reason = " ".join(str(error).split())
            raise FolderError(f"{name}: cannot be read as a tokenizer.json ({reason})") from error
        end = core.token_to_id(END)
        return cls(core, ends=[] if end is None else [end])

    @classmethod
    def from_folder(cls, folder: Path) -> "TextTokenizer":
        """The tokenizer of a Hugging Face folder, or of one that `files` wrote; FolderError if there is none."""
        core, begin, ends, template = read_folder(folder)
        return cls(core, bos_id=begin, ends=ends, template=template)

    @classmethod
    def kept(cls, folder: Path) -> "TextTokenizer":
        """The tokenizer that a run or a model folder of ours keeps; early ones have tokenizer.json alone."""
        whole = (folder / "tokenizer_config.json").is_file()
        return cls.from_folder(folder) if whole else cls.load(folder / "tokenizer.json")

    def files(self) -> dict[str, Raw]:
        """The files `from_folder` reads; Hugging Face's AutoTokenizer reads them too."""
        facts: dict[str, Any] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": self.token(self.bos_id),
            "eos_token": self.token(self.eos_id),
            "clean_up_tokenization_spaces": False,
        }
        if len(self.ends) > 1:
            facts["eos_token_id"] = list(self.ends)
        if self.template is not None:
            facts["chat_template"] = self.template
        return {"tokenizer.json": self.to_json().encode(), "tokenizer_config.json": encode_json(facts)}

    def to_json(self) -> str:
        """The text of the tokenizer.json: equal texts, equal tokenizers."""
        return str(self._core.to_str(pretty=True))

    @property
    def eos_id(self) -> int | None:
        return self.ends[0] if self.ends else None

    @property
    def leading(self) -> int | None:
        """The begin, if the file itself puts it before every text: the model was then trained so."""
        before = self._core.encode("", add_special_tokens=True).ids[:1]
        return self.bos_id if before == [self.bos_id] else None

    def encode(self, text: str, *, specials: bool = False) -> list[int]:
        """The ids of a text, without begin and end.

        The name of a special token in the text is ordinary text; with `specials` it is that token, for chat templates.
        """
        if not specials:
            return self.encode_all([text])[0]
        check_writable(text)
        if self._fast:
            first, *others = (self._fast(part) for part in text.split(END))
            return first + [number for part in others for number in (self.size - 1, *part)]
        found: list[int] = self._open_core.encode(text, add_special_tokens=False).ids
        return found

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, on all cores: the same as `encode` on each."""
        try:
            if self._fast:
                return [self._fast(text) for text in texts]
            return [encoding.ids for encoding in self._core.encode_batch_fast(texts, add_special_tokens=False)]
        except (TypeError, UnicodeEncodeError):
            for text in texts:
                check_writable(text)
            raise

    def decode(self, ids: Sequence[int], *, specials: bool = False, continuing: bool = False) -> str:
        """The text of the ids; half a character (a model stopped inside an emoji) becomes U+FFFD.

        Special tokens are left out, or with `specials` written by their names. A text `continuing` another keeps the
        space before its first word, which at the beginning of a text is only how SentencePiece spells a word.
        """
        raw = b"".join([self.spellings.of(number, specials=specials) for number in ids])
        if not self.spellings.whole:
            return str(self._core.decode(list(ids), skip_special_tokens=not specials))
        text = raw.decode("utf-8", "replace")
        return text if continuing else text.removeprefix(self.spellings.front)

    @cached_property
    def spellings(self) -> Spellings:
        """What each token spells."""
        return Spellings(self._core, self.size)

    def whole_words(self) -> list[str | None]:
        """For each id the word that it spells by itself, if it does; of single characters every letter is one."""
        return whole_words([self.spellings.of(number) for number in range(self.size)])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A short name for each token, for the axis of a picture: "walk", "·ing" (the word goes on), "<|endoftext|>".

        The space before a word is left out; a space alone is "␣", half a character its byte, as in "\\xc3". Where
        every token is a character or a byte, no word is said to go on.
        """
        spellings = [self.spellings.of(number) for number in ids]
        names = [visible(raw) if raw else self.token(number) or "" for number, raw in zip(ids, spellings, strict=True)]
        if self._fast:
            return names
        words = words_of_tokens(spellings)
        going_on = [
            word == before != -1 and not raw[-1:].isspace()  # white space belongs to the word it leads to
            for word, before, raw in zip(words[1:], words, spellings, strict=False)
        ]
        return [f"·{name}" if on else name for name, on in zip(names, [False, *going_on], strict=False)]

    def token(self, number: int | None) -> str | None:
        """A token's name in the file."""
        return None if number is None else self._core.id_to_token(number)

    @cached_property
    def _open_core(self) -> tokenizers.Tokenizer:
        """The same tokenizer, which sees special tokens in the text."""
        return tokenizers.Tokenizer.from_str(self._core.to_str())
