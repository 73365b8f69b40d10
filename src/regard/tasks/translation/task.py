"""Training a translator: batches of sentence pairs, cross-entropy of the next target token, BLEU and exact match.

Works with any model whose `model(source, target)` returns logits (B, T, V).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config
from regard.data.batches import DataPosition, PairBatch
from regard.errors import InputError
from regard.metrics.rouge import RougeScorer
from regard.metrics.translation import score_corpus
from regard.ops.cross_entropy import IGNORE_INDEX, cross_entropy_inplace
from regard.ops.dropout import rand
from regard.tasks.generating import Generate, TargetTokenizer
from regard.tasks.translation.dataset import ParallelText

MAX_SOURCE_CHARACTERS = 100_000  # of one text
MAX_SOURCE_TOKENS = 4_096  # attention takes memory by the square of it

SCORERS = {"rouge": RougeScorer}  # metrics a recipe can choose besides BLEU, chrF and exact match


class TranslationConfig(Config):
    """The training objective of a translator."""

    label_smoothing: float = Field(0.1, ge=0, lt=1, description="share of the target spread over all tokens")
    scheduled_sampling: float = Field(
        0.0, ge=0, lt=1, description="share of target tokens replaced by the model's own predictions"
    )
    metrics: tuple[Literal["rouge"], ...] = Field((), description="further metrics: rouge, for summaries")
    max_length_ratio: float = Field(
        2.0, gt=0, description="tokens of a generated text for each token of its source, at most; and ten more"
    )

    def facts(self) -> dict[str, Any]:
        """The settings that a trained model needs, where they are not the defaults; its folder stores them."""
        return self.model_dump(mode="json", include={"metrics", "max_length_ratio"}, exclude_defaults=True)


class TranslationTraining:
    """Translation as the training loop needs it; without data it only encodes texts and scores predictions."""

    name = "translation"
    unit = "tokens"
    main_metric = "bleu"

    def __init__(
        self, tokenizer: TargetTokenizer, config: TranslationConfig | None = None, data: ParallelText | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.config = config or TranslationConfig()
        self.data = data

    # ------------------------------------------------ training

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, PairBatch]]:
        """Endless batches from a position on, each with the position after it."""
        assert self.data is not None, "made without data"
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int:
        assert self.data is not None, "made without data"
        return self.data.batches_per_epoch(max_tokens=max_tokens, seed=seed)

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[PairBatch]:
        """The validation pairs, or the first `most` of them, once."""
        assert self.data is not None, "made without data"
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: nn.Module, batch: PairBatch) -> Tensor:
        """Cross-entropy summed over the batch's real target tokens; smoothed while training only."""
        target = batch.target_in
        if model.training and self.config.scheduled_sampling:
            with torch.no_grad():
                first = model(batch.source, target)
            target = self._mix_in_predictions(target, first)
        logits = model(batch.source, target)
        wanted = batch.target_out.flatten()
        return cross_entropy_inplace(
            logits.flatten(0, 1),
            wanted.masked_fill(wanted == self.tokenizer.pad_id, IGNORE_INDEX),
            label_smoothing=self.config.label_smoothing if model.training else 0.0,
        )

    def _mix_in_predictions(self, target: Tensor, logits: Tensor) -> Tensor:
        """Scheduled sampling (Bengio 2015) at a constant rate: some tokens are replaced by the model's predictions.

        In parallel, from a first pass over the true tokens (Mihaylova & Martins 2019), instead of step by step.
        """
        logits[..., [self.tokenizer.pad_id, self.tokenizer.eos_id]] = -torch.inf
        own = torch.cat([target[:, :1], logits.argmax(-1)[:, :-1]], dim=1)  # the prediction at t is the input at t + 1
        taken = (rand(target.shape, target.device) < self.config.scheduled_sampling) & (target != self.tokenizer.pad_id)
        taken[:, 0] = False
        return torch.where(taken, own, target)

    # ------------------------------------------------ decoding

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Texts as one padded source (B, S), each with its end token."""
        for text in texts:
            if len(text) > MAX_SOURCE_CHARACTERS:
                raise _too_long(f"{len(text):,} characters", f"{MAX_SOURCE_CHARACTERS:,}")
        rows = [[*ids, self.tokenizer.eos_id] for ids in self.tokenizer.encode_batch(list(texts))]
        for text, row in zip(texts, rows, strict=True):
            if len(row) == 1:
                raise InputError(f"{text!r} has no words; wanted a sentence to translate")
            if len(row) > MAX_SOURCE_TOKENS:
                raise _too_long(f"{len(row):,} tokens", f"{MAX_SOURCE_TOKENS:,}")
        source = torch.full((len(rows), max(map(len, rows))), self.tokenizer.pad_id)
        for line, row in zip(source, rows, strict=True):
            line[: len(row)] = torch.tensor(row)
        return source

    def max_new_tokens(self, source: Tensor) -> list[int]:
        """The most tokens of each translation, by the length of its source; independent of the other rows."""
        lengths = (source != self.tokenizer.pad_id).sum(1)
        return ((self.config.max_length_ratio * lengths).long() + 10).tolist()

    def metrics(self, model: Any, loss: float, batches: Iterable[PairBatch], generate: Generate) -> dict[str, float]:
        """Scores of the translations that the model generates for these batches."""
        predictions: list[str] = []
        references: list[str] = []
        for batch in batches:
            predictions += self.predict(model, batch, generate)
            references += self.references(batch)
        return self.score(predictions, references)

    def predict(self, model: Any, batch: PairBatch, generate: Generate) -> list[str]:
        """The best translation of each source of a batch."""
        found = generate(model, batch.source, self.max_new_tokens(batch.source))
        return [self.tokenizer.target.decode(hypotheses[0].tokens) for hypotheses in found]

    def references(self, batch: PairBatch) -> list[str]:
        return [self.tokenizer.target.decode(row) for row in batch.target_out.tolist()]

    def score(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Exact match from 0 to 1, BLEU and the config's further metrics from 0 to 100."""
        found = score_corpus(predictions, references)
        scores = {"exact_match": found.exact_match, "bleu": found.bleu.value}
        for scorer in self.scorers():
            for prediction, reference in zip(predictions, references, strict=True):
                scorer.add(prediction, reference)
            scores |= scorer.scores()
        return scores

    def scorers(self) -> list[RougeScorer]:
        """New scorers of the config's further metrics."""
        return [SCORERS[name]() for name in self.config.metrics]


def _too_long(length: str, limit: str) -> InputError:
    return InputError(f"a text of {length}, at most {limit} are translated at once; split it into sentences")
