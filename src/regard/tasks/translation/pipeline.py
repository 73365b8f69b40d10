"""A translator in use: text in, text out, and with alignment the attention over the source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from regard.checkpoint import CONFIG, ModelFolder
from regard.errors import FolderError, InputError
from regard.generation import Beam, Greedy, Hypothesis, Strategy, generate
from regard.generation.decode import Limits
from regard.huggingface.folder import Loaded
from regard.inspection.alignment import alignment_matrix
from regard.metrics.alignment import Link, argmax_links, tokens_to_words, words_with_tokens
from regard.tasks.show import Showable
from regard.tasks.translation.task import TranslationConfig, TranslationTraining
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.words import split_words

BATCH_SIZE = 64  # sentences decoded together


@dataclass(frozen=True)
class Alignment:
    """Attention over the source: a row per target token, a column per source token, the end token last."""

    weights: np.ndarray  # (T, S); a row sums to 1
    source: list[str]  # S tokens
    target: list[str]  # T tokens
    words: np.ndarray  # (target words, source words), without the end token
    source_words: list[str]
    target_words: list[str]

    @property
    def links(self) -> set[Link]:
        """(source word, target word): each target word with the source word it attends to most."""
        return argmax_links(self.words)


@dataclass(frozen=True)
class TranslatedText:
    """One hypothesis."""

    text: str
    score: float  # what the strategy ranks by
    log_probability: float
    ended: bool  # False: cut off at the length limit
    alignment: Alignment | None = None


@dataclass(frozen=True)
class Translation:
    """The translations of one input, the best first; `text`, `score` and `alignment` are the best one's."""

    source: str
    translations: list[TranslatedText]

    @property
    def text(self) -> str:
        return self.translations[0].text

    @property
    def score(self) -> float:
        return self.translations[0].score

    @property
    def alignment(self) -> Alignment | None:
        return self.translations[0].alignment


class Translator(Showable):
    """`run("a sentence").text`; `.model` is the nn.Module, `.tokenizer` its tokenizer.

    `strategy` is the default way to decode. `max_new_tokens` bounds every translation; None: by the length of its
    source and config.max_length_ratio. `force_eos` and `renormalize`: see generation.decode.Limits.
    """

    def __init__(
        self,
        kind: str,
        model: nn.Module,
        tokenizer: Any,
        strategy: Strategy | None = None,
        max_new_tokens: int | None = None,
        force_eos: bool = False,
        renormalize: bool = False,
        config: TranslationConfig | None = None,
    ) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.task = TranslationTraining(tokenizer, config)
        self.strategy = strategy or Greedy()
        self.max_new_tokens = max_new_tokens
        self.force_eos, self.renormalize = force_eos, renormalize

    @classmethod
    def open(cls, folder: ModelFolder) -> "Translator":
        tokenizer = BPETokenizer.load(folder.tokenizer)
        vocab_size: int = folder.model.config.vocab_size  # type: ignore[union-attr, assignment]
        if tokenizer.vocab_size > vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {vocab_size}: not a pair"
            )
        return cls(folder.kind, folder.model, tokenizer, config=_task_config(folder))

    @classmethod
    def adopt(cls, found: Loaded) -> "Translator":
        """A translator of a Hugging Face folder, with the decoding settings of its generation config."""
        strategy = Beam(found.num_beams, found.length_penalty) if found.num_beams > 1 else Greedy()
        settings = found.max_new_tokens, found.force_eos, found.renormalize
        return cls(found.kind, found.model, found.tokenizer, strategy, *settings)

    @overload
    def encode(self, texts: str) -> list[int]: ...  # type: ignore[overload-overlap]  # a str is a Sequence of str too

    @overload
    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...

    def encode(self, texts: str | Sequence[str]) -> list[int] | list[list[int]]:
        """The ids of a source, or of each of several, with the end token."""
        if isinstance(texts, str):
            return self.encode([texts])[0]
        return [row[row != self.tokenizer.pad_id].tolist() for row in self.task.encode(texts)]

    def run(self, text: str, strategy: Strategy | None = None, *, alignment: bool = False) -> Translation:
        """Translate one text; with `alignment`, each translation has the attention over its source."""
        return self.run_all([text], strategy, alignment=alignment)[0]

    def run_all(
        self, texts: Sequence[str], strategy: Strategy | None = None, *, alignment: bool = False, first: int = 0
    ) -> list[Translation]:
        """Translate many, batched by length; the results are in the order of the texts.

        `first` is the number of the first text, where these are a part of more: it seeds the samples.
        """
        if alignment and not self.model.alignment_taps:
            raise InputError("this model has no attention, so it has no alignment to show")
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        translations: dict[int, Translation] = {}
        for start in range(0, len(texts), BATCH_SIZE):
            several = by_length[start : start + BATCH_SIZE]
            source = self.task.encode([texts[i] for i in several])
            found = generate(
                self.model,
                source.to(self._device),
                strategy or self.strategy,
                self.limits(source, [first + i for i in several]),
            )
            for i, row, hypotheses in zip(several, source.tolist(), found, strict=True):
                ids = [number for number in row if number != self.tokenizer.pad_id]
                translations[i] = Translation(texts[i], [self._translated(ids, h, alignment) for h in hypotheses])
        return [translations[i] for i in range(len(texts))]

    def limits(self, source: Tensor, numbers: list[int]) -> Limits:
        """The bounds of decoding for these sources; the numbers seed their samples."""
        own = self.max_new_tokens
        limits = self.task.max_new_tokens(source) if own is None else [own] * len(source)
        return Limits(limits, row_ids=numbers, force_eos=self.force_eos, renormalize=self.renormalize)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _translated(self, source: list[int], found: Hypothesis, alignment: bool) -> TranslatedText:
        return TranslatedText(
            self.tokenizer.target.decode(found.tokens),
            found.score,
            found.log_probability,
            found.ended,
            self.align(source, found.tokens) if alignment and found.tokens else None,
        )

    def align(self, source: list[int], target: list[int]) -> Alignment:
        """The attention of this target over this source, which ends with the end token."""
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


def _task_config(folder: ModelFolder) -> TranslationConfig:
    facts = {name: value for name, value in folder.task.items() if name in TranslationConfig.model_fields}
    try:
        return TranslationConfig.model_validate(facts)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, ("task", *problem["loc"])))
        raise FolderError(f"{folder.folder / CONFIG}: {where}: {problem['msg']}") from error


def _words(names: Any, ids: list[int]) -> list[str]:
    words = split_words(names.decode(ids))
    return [words[number] for number in words_with_tokens(names.word_ids(ids))]


def export_settings(pipeline: Translator) -> Mapping[str, Any]:
    """What a Hugging Face folder keeps beside the weights: how to decode."""
    beam = pipeline.strategy if isinstance(pipeline.strategy, Beam) else Beam(1)
    return {
        "num_beams": beam.num_beams,
        "length_penalty": beam.length_penalty,
        "max_new_tokens": pipeline.max_new_tokens,
        "force_eos": pipeline.force_eos,
        "renormalize": pipeline.renormalize,
    }
