"""Translation: sentence pairs in, the next target token as the lesson, whole sentences out.

Works with any model that answers `model(source, target)` with logits (B, T, V).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config
from regard.data.batches import DataPosition, PairBatch
from regard.errors import InputError
from regard.metrics.translation import score_corpus
from regard.ops.cross_entropy import IGNORE_INDEX, cross_entropy_inplace
from regard.tasks.translation.dataset import ParallelText

# (model, source, the most tokens each row may get) -> for each row its hypotheses, best first
Generate = Callable[[Any, Tensor, list[int]], list[list[Any]]]


class TargetTokenizer(Protocol):
    """What the task asks of a tokenizer; `target` is that of the other side, which may be the same."""

    pad_id: int
    bos_id: int
    eos_id: int

    @property
    def target(self) -> "TargetTokenizer": ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class TranslationConfig(Config):
    """What is asked of a translator while it learns."""

    label_smoothing: float = Field(0.1, ge=0, lt=1, description="share of the target spread over all tokens")
    scheduled_sampling: float = Field(0.0, ge=0, lt=1, description="share of target words that the model's own replace")


class Translation:
    """The task, with the tokenizer it reads and writes by; with data to learn from, or without to run."""

    name = "translation"
    unit = "tokens"

    def __init__(
        self, tokenizer: TargetTokenizer, config: TranslationConfig | None = None, data: ParallelText | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.config = config or TranslationConfig()
        self.data = data

    # ------------------------------------------------ learning

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, PairBatch]]:
        """Batches without end from a position on, each with the position behind it."""
        assert self.data is not None, "this task was made without data"
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int:
        assert self.data is not None, "this task was made without data"
        return self.data.batches_per_epoch(max_tokens=max_tokens, seed=seed)

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[PairBatch]:
        """The held-out pairs, or the first `most` of them, once."""
        assert self.data is not None, "this task was made without data"
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: nn.Module, batch: PairBatch) -> Tensor:
        """Cross-entropy summed over the batch's real target tokens; smoothed while training only."""
        target = batch.target_in
        if model.training and self.config.scheduled_sampling:
            with torch.no_grad():
                first = model(batch.source, target)
            target = self._with_own_words(target, first)
        logits = model(batch.source, target)
        wanted = batch.target_out.flatten()
        return cross_entropy_inplace(
            logits.flatten(0, 1),
            wanted.masked_fill(wanted == self.tokenizer.pad_id, IGNORE_INDEX),
            label_smoothing=self.config.label_smoothing if model.training else 0.0,
        )

    def _with_own_words(self, target: Tensor, logits: Tensor) -> Tensor:
        """Scheduled sampling (Bengio 2015) with one share throughout: some words are what the model would have written.

        All at once, from a first pass with the true words (Mihaylova & Martins 2019), so that no model need wait.
        """
        logits[..., [self.tokenizer.pad_id, self.tokenizer.eos_id]] = -torch.inf
        own = torch.cat([target[:, :1], logits.argmax(-1)[:, :-1]], dim=1)  # what is chosen at t stands before t + 1
        taken = (torch.rand(target.shape, device=target.device) < self.config.scheduled_sampling) & (
            target != self.tokenizer.pad_id
        )
        taken[:, 0] = False
        return torch.where(taken, own, target)

    # ------------------------------------------------ running

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Texts as one padded source (B, S), each closed by the end symbol."""
        rows = [[*ids, self.tokenizer.eos_id] for ids in self.tokenizer.encode_batch(list(texts))]
        for text, row in zip(texts, rows, strict=True):
            if len(row) == 1:
                raise InputError(f"{text!r} has no words; wanted a sentence to translate")
        source = torch.full((len(rows), max(map(len, rows))), self.tokenizer.pad_id)
        for line, row in zip(source, rows, strict=True):
            line[: len(row)] = torch.tensor(row)
        return source

    def longest(self, source: Tensor) -> list[int]:
        """How long each translation may get: twice the source and some; a row's neighbors do not matter."""
        return (2 * (source != self.tokenizer.pad_id).sum(1) + 10).tolist()

    def metrics(self, model: Any, loss: float, batches: Iterable[PairBatch], generate: Generate) -> dict[str, float]:
        """Free-running scores of what the model writes for these batches, on its own words."""
        predictions: list[str] = []
        references: list[str] = []
        for batch in batches:
            predictions += self.predict(model, batch, generate)
            references += self.references(batch)
        return self.score(predictions, references)

    def predict(self, model: Any, batch: PairBatch, generate: Generate) -> list[str]:
        """The best translation of each source of a batch."""
        found = generate(model, batch.source, self.longest(batch.source))
        return [self.tokenizer.target.decode(hypotheses[0].tokens) for hypotheses in found]

    def references(self, batch: PairBatch) -> list[str]:
        return [self.tokenizer.target.decode(row) for row in batch.target_out.tolist()]

    def score(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Free-running scores: shares for exact match, 0 to 100 for BLEU."""
        found = score_corpus(predictions, references)
        return {"exact_match": found.exact_match, "bleu": found.bleu.value}
