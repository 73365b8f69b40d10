"""Training a masked language model: masked tokens, and whether one text follows another (Devlin 2019, 3.1).

Works with any model whose `model.encode(ids, segment_ids)` returns `.hidden` (B, T, D) and `.pooled` (B, D), with token
logits `model.token_logits(hidden)` (N, V) and, where next-sentence prediction is trained,
`model.next_sentence_logits(pooled)` (B, 2). Only masked positions get logits: a seventh of all.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.config import Config
from regard.data.batches import DataPosition
from regard.data.masking import MaskingConfig
from regard.tasks.masked_lm.dataset import MaskedBatch, MaskedText


class MaskedLMConfig(Config):
    """The training objective of a masked language model."""

    next_sentence: bool = Field(True, description="also train next-sentence prediction")
    masking: MaskingConfig = MaskingConfig()


class MaskedLMTraining:
    """Masked language modeling as the training loop needs it."""

    name = "masked-lm"
    unit = "masked tokens"

    def __init__(self, data: MaskedText) -> None:
        self.data = data

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, MaskedBatch]]:
        """Endless masked rows; each is a pure function of (seed, epoch, index)."""
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> None:
        """None: rows and masks differ in every epoch, without end."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[MaskedBatch]:
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: MaskedBatch) -> Tensor:
        """Summed cross-entropy of the masked tokens; the mean loss of the pairs has equal weight."""
        token_logits, next_sentence_logits = logits_of(model, batch)
        loss = F.cross_entropy(token_logits.float(), batch.targets, reduction="sum")
        if next_sentence_logits is not None:
            assert batch.next is not None
            pairs = batch.pairs or len(batch.ids)
            loss = loss + batch.tokens / pairs * F.cross_entropy(
                next_sentence_logits.float(), batch.next, reduction="sum"
            )
        return loss

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[MaskedBatch], generate: Any) -> dict[str, float]:
        """Accuracy and perplexity of the masked tokens, and accuracy of next-sentence prediction."""
        correct = masked = correct_pairs = pairs = 0
        cross_entropy = 0.0
        for batch in batches:
            token_logits, next_sentence_logits = logits_of(model, batch)
            cross_entropy += F.cross_entropy(token_logits.float(), batch.targets, reduction="sum").item()
            correct += int((token_logits.argmax(-1) == batch.targets).sum())
            masked += batch.tokens
            if next_sentence_logits is not None and batch.next is not None:
                correct_pairs += int((next_sentence_logits.argmax(-1) == batch.next).sum())
                pairs += len(next_sentence_logits)
        found = {
            "masked_accuracy": correct / masked if masked else math.nan,
            "masked_perplexity": math.exp(min(cross_entropy / masked, 700.0)) if masked else math.nan,
        }
        return found | ({"next_sentence_accuracy": correct_pairs / pairs} if pairs else {})


def logits_of(model: Any, batch: MaskedBatch) -> tuple[Tensor, Tensor | None]:
    """Logits of the masked tokens (M, V), and of the pairs (B, 2) where next-sentence prediction is trained."""
    read = model.encode(batch.ids, batch.segment_ids)
    hidden = read.hidden.flatten(0, 1)[batch.positions]  # (M, D)
    return model.token_logits(hidden), None if batch.next is None else model.next_sentence_logits(read.pooled)
