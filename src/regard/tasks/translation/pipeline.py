"""A trained translator at work: text in, text out, and where it looked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError, InputError
from regard.generation import Beam, Greedy, Hypothesis, Strategy, generate
from regard.generation.decode import Limits
from regard.huggingface.folder import Loaded
from regard.inspection.alignment import alignment_matrix
from regard.metrics.alignment import Link, argmax_links, tokens_to_words, words_with_tokens
from regard.tasks.translation.task import Translation
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.words import split_words

BATCH = 64  # sentences decoded side by side


@dataclass(frozen=True)
class Alignment:
    """Where each target token looked: one row a target token, one column a source token, the end symbol last."""

    weights: np.ndarray  # (T, S); a row sums to 1
    source: list[str]  # S pieces
    target: list[str]  # T pieces
    words: np.ndarray  # (target words, source words), the end symbol left out
    source_words: list[str]
    target_words: list[str]

    @property
    def links(self) -> set[Link]:
        """(source word, target word): each target word with the source word it looked at most."""
        return argmax_links(self.words)


@dataclass(frozen=True)
class Translated:
    """One translation."""

    text: str
    score: float  # what the strategy ranks by
    log_probability: float
    ended: bool  # False: cut off at the length limit
    alignment: Alignment | None = None


@dataclass(frozen=True)
class Answer:
    """The translations of one input, the best first; `text`, `score` and `alignment` are the best one's."""

    source: str
    translations: list[Translated]

    @property
    def text(self) -> str:
        return self.translations[0].text

    @property
    def score(self) -> float:
        return self.translations[0].score

    @property
    def alignment(self) -> Alignment | None:
        return self.translations[0].alignment


class Translator:
    """`run("a sentence").text`; `.model` is the nn.Module, `.tokenizer` its words.

    `strategy` is how it searches where the caller says nothing; `longest` the most tokens it writes for any text, where
    the length of the text does not decide. `closed` and `renormalized`: see generation.decode.Limits.
    """

    def __init__(
        self,
        kind: str,
        model: nn.Module,
        tokenizer: Any,
        strategy: Strategy | None = None,
        longest: int | None = None,
        closed: bool = False,
        renormalized: bool = False,
    ) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.task = Translation(tokenizer)
        self.strategy = strategy or Greedy()
        self.longest = longest
        self.closed, self.renormalized = closed, renormalized

    @classmethod
    def open(cls, folder: ModelFolder) -> "Translator":
        tokenizer = BPETokenizer.load(folder.tokenizer)
        vocab_size: int = folder.model.config.vocab_size  # type: ignore[union-attr, assignment]
        if tokenizer.vocab_size > vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {vocab_size}: not a pair"
            )
        return cls(folder.kind, folder.model, tokenizer)

    @classmethod
    def adopt(cls, found: Loaded) -> "Translator":
        """A translator of a Hugging Face folder, which says itself how it wants to be searched."""
        strategy = Beam(found.beams, found.length_penalty) if found.beams > 1 else Greedy()
        settings = found.longest, found.closed, found.renormalized
        return cls(found.kind, found.model, found.tokenizer, strategy, *settings)

    def run(self, text: str, strategy: Strategy | None = None, *, alignment: bool = False) -> Answer:
        """Translate one text; with `alignment`, each translation says where it looked."""
        return self.run_all([text], strategy, alignment=alignment)[0]

    def run_all(
        self, texts: Sequence[str], strategy: Strategy | None = None, *, alignment: bool = False, first: int = 0
    ) -> list[Answer]:
        """Translate many, those of like length side by side; the answers come in the texts' order.

        `first` is the number of the first text, where these are a part of more: a sample's chance goes by it.
        """
        if alignment and not self.model.alignment_taps:
            raise InputError("this model has no attention: there is no alignment to show")
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        answers: dict[int, Answer] = {}
        for start in range(0, len(texts), BATCH):
            several = by_length[start : start + BATCH]
            source = self.task.encode([texts[i] for i in several])
            found = generate(
                self.model,
                source.to(self._device),
                strategy or self.strategy,
                self._limits(source, [first + i for i in several]),
            )
            for i, row, hypotheses in zip(several, source.tolist(), found, strict=True):
                ids = [number for number in row if number != self.tokenizer.pad_id]
                answers[i] = Answer(texts[i], [self._translated(ids, h, alignment) for h in hypotheses])
        return [answers[i] for i in range(len(texts))]

    def _limits(self, source: Tensor, numbers: list[int]) -> Limits:
        longest = self.task.longest(source) if self.longest is None else [self.longest] * len(source)
        return Limits(longest, row_ids=numbers, force_eos=self.closed, renormalize=self.renormalized)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _translated(self, source: list[int], found: Hypothesis, alignment: bool) -> Translated:
        return Translated(
            self.tokenizer.target.decode(found.tokens),
            found.score,
            found.log_probability,
            found.ended,
            self.align(source, found.tokens) if alignment and found.tokens else None,
        )

    def align(self, source: list[int], target: list[int]) -> Alignment:
        """Where the model looks when it writes this target for this source; the source ends with the end symbol."""
        weights = alignment_matrix(self.model, source, target)
        names, target_names = self.tokenizer, self.tokenizer.target
        return Alignment(
            weights=weights,
            source=names.token_labels(source),
            target=target_names.token_labels(target),
            words=tokens_to_words(weights, names.word_ids(source), target_names.word_ids(target)),
            source_words=_words(names, source),
            target_words=_words(target_names, target),
        )


def _words(names: Any, ids: list[int]) -> list[str]:
    words = split_words(names.decode(ids))
    return [words[number] for number in words_with_tokens(names.word_ids(ids))]
