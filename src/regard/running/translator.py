"""A trained translator at work: text in, text out, and where it looked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError
from regard.generation import Greedy, Hypothesis, Strategy, generate
from regard.generation.decode import Limits
from regard.inspection.alignment import look_of
from regard.metrics.alignment import Link, by_words, links, owned
from regard.tasks.translation import Translation
from regard.text.tokenizer import Tokenizer, split_words

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
        return links(self.words)


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
    """`run("a sentence").text`; `.model` is the nn.Module, `.tokenizer` its words."""

    def __init__(self, model: nn.Module, tokenizer: Tokenizer) -> None:
        self.model: Any = model
        self.tokenizer = tokenizer
        self.task = Translation(tokenizer)

    @classmethod
    def open(cls, folder: ModelFolder) -> "Translator":
        tokenizer = Tokenizer.load(folder.tokenizer)
        vocabulary: int = folder.model.config.vocabulary  # type: ignore[union-attr, assignment]
        if tokenizer.size > vocabulary:
            raise FolderError(f"{folder.tokenizer} has {tokenizer.size} tokens, its model {vocabulary}: not a pair")
        return cls(folder.model, tokenizer)

    def run(self, text: str, strategy: Strategy | None = None, *, alignment: bool = False) -> Answer:
        """Translate one text; with `alignment`, each translation says where it looked."""
        return self.run_all([text], strategy, alignment=alignment)[0]

    def run_all(
        self, texts: Sequence[str], strategy: Strategy | None = None, *, alignment: bool = False
    ) -> list[Answer]:
        """Translate many, those of like length side by side; the answers come in the texts' order."""
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        answers: dict[int, Answer] = {}
        for start in range(0, len(texts), BATCH):
            several = by_length[start : start + BATCH]
            source = self.task.encode([texts[i] for i in several])
            limits = Limits(self.task.longest(source), numbers=several)
            found = generate(self.model, source.to(self._device), strategy or Greedy(), limits)
            for i, row, hypotheses in zip(several, source.tolist(), found, strict=True):
                ids = [number for number in row if number != self.tokenizer.padding]
                answers[i] = Answer(texts[i], [self._translated(ids, h, alignment) for h in hypotheses])
        return [answers[i] for i in range(len(texts))]

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _translated(self, source: list[int], found: Hypothesis, alignment: bool) -> Translated:
        return Translated(
            self.tokenizer.decode(found.tokens),
            found.score,
            found.log_probability,
            found.ended,
            self.align(source, found.tokens) if alignment and found.tokens else None,
        )

    def align(self, source: list[int], target: list[int]) -> Alignment:
        """Where the model looks when it writes this target for this source; the source ends with the end symbol."""
        weights = look_of(self.model, source, target)
        names = self.tokenizer
        return Alignment(
            weights=weights,
            source=names.pieces(source),
            target=names.pieces(target),
            words=by_words(weights, names.words(source), names.words(target)),
            source_words=self._words(source),
            target_words=self._words(target),
        )

    def _words(self, ids: list[int]) -> list[str]:
        words = split_words(self.tokenizer.decode(ids))
        return [words[number] for number in owned(self.tokenizer.words(ids))]
