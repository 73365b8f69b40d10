"""Tokens that mark the start of a word with "▁": the vocabulary that SentencePiece and Unigram tokenizers share."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from regard.errors import FolderError
from regard.tokenizers.bpe import EOS_TOKEN, PAD_TOKEN, UNK_TOKEN, check_utf8
from regard.tokenizers.token_bytes import SPACE
from regard.tokenizers.words import WORD, single_token_words

SPECIAL_TOKENS = (EOS_TOKEN, UNK_TOKEN, PAD_TOKEN)


class MetaspaceTokenizer(ABC):
    """Text to token ids and back. `target` is the tokenizer of the target language, often the same.

    `extra_tokens` are whole tokens wherever they occur in a text, such as T5's sentinels "<extra_id_0>"; other special
    tokens in a text are ordinary text. The pad token also starts the decoder.
    """

    def __init__(self, vocab: dict[str, int], target: Any = None, extra_tokens: Sequence[str] = ()) -> None:
        """`vocab` maps tokens to ids. FolderError, without a file name: a special token is missing."""
        for token in SPECIAL_TOKENS:
            if token not in vocab:
                raise FolderError(f"has no {token}; wanted the tokenizer of a T5 or Marian model")
        self.vocab = vocab
        self._tokens = {number: token for token, number in vocab.items()}
        self.eos_id, self.unk_id = vocab[EOS_TOKEN], vocab[UNK_TOKEN]
        self.pad_id = self.bos_id = vocab[PAD_TOKEN]
        self.target: Any = target or self
        self.extra_tokens = tuple(extra_tokens)
        # Whatever a text spells, it does not become a special token.
        self._ordinary = {token: number for token, number in vocab.items() if not self._is_special(token)}
        self._extra = re.compile(f"({'|'.join(map(re.escape, extra_tokens))})") if extra_tokens else None

    @abstractmethod
    def segment(self, text: str) -> list[str]:
        """The tokens of a text; one that is not in the vocabulary becomes "<unk>"."""

    @abstractmethod
    def to_files(self) -> dict[str, bytes]:
        """The files it is loaded from."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest id."""
        return max(self._tokens) + 1

    def encode(self, text: str) -> list[int]:
        """The token ids of a text, without pad and eos."""
        check_utf8(text)
        ids: list[int] = []
        for part in [text] if self._extra is None else self._extra.split(text):
            if part in self.extra_tokens:
                ids.append(self.vocab[part])
            elif part:
                ids += [self._ordinary.get(token, self.unk_id) for token in self.segment(part)]
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; eos and padding are skipped, an unknown token is "⁇"."""
        return "".join(self._text(number) for number in ids).removeprefix(" ")

    def word_ids(self, ids: Sequence[int]) -> list[int]:
        """For each token the index of its word in `split_words(decode(ids))`; -1 for special tokens and no word."""
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

    def single_token_words(self) -> list[str | None]:
        """For each id the word that it spells on its own, or None."""
        return single_token_words([self._text(number).encode() for number in range(self.vocab_size)])

    def token_labels(self, ids: Sequence[int]) -> list[str]:
        """A short label for each token, for plots: "walk", "·ing" (continues a word), "</s>"."""
        return [self._label(number) for number in ids]

    def _label(self, number: int) -> str:
        token = self._tokens.get(number, UNK_TOKEN)
        if self._is_special(token):
            return token
        return token.removeprefix(SPACE) or "␣" if token.startswith(SPACE) else f"·{token}"

    def _is_special(self, token: str) -> bool:
        return token in SPECIAL_TOKENS or token in self.extra_tokens

    def _text(self, number: int) -> str:
        token = self._tokens.get(number, UNK_TOKEN)
        if token in (EOS_TOKEN, PAD_TOKEN):
            return ""
        return "⁇" if token == UNK_TOKEN else token.replace(SPACE, " ")
