"""Masked language modeling: hidden words as the lesson, and whether one text follows another (Devlin 2019, 3.1).

Works with any model whose `model.read(ids, segment_ids)` returns `.hidden` (B, T, D) and `.whole` (B, D), with token
logits `model.word_logits(hidden)` (N, V) and, where next-sentence prediction is trained, `model.next_logits(whole)`
(B, 2). Only masked positions get logits: a seventh of all.
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


class MaskedLanguageConfig(Config):
    """What is asked of a reader while it learns."""

    next_sentence: bool = Field(True, description="ask too whether the second segment follows the first")
    masking: MaskingConfig = MaskingConfig()


class MaskedLanguage:
    """The task, with its data."""

    name = "masked"
    unit = "hidden words"

    def __init__(self, data: MaskedText) -> None:
        self.data = data

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, MaskedBatch]]:
        """Masked rows without end, each a pure function of (seed, epoch, index)."""
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> None:
        """Rows and masks are other ones in every pass: there is no end to them."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[MaskedBatch]:
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: MaskedBatch) -> Tensor:
        """Summed cross-entropy of the hidden words; the mean loss of the pairs counts as much as that of the words."""
        word_logits, next_logits = answers(model, batch)
        loss = F.cross_entropy(word_logits, batch.targets, reduction="sum")
        if next_logits is not None:
            assert batch.next is not None
            loss = loss + batch.tokens * F.cross_entropy(next_logits, batch.next)
        return loss

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[MaskedBatch], generate: Any) -> dict[str, float]:
        """How often the hidden word is the likeliest, how surprising it is, and how often a pair is judged rightly."""
        right = asked = judged = pairs = 0
        surprise = 0.0
        for batch in batches:
            word_logits, next_logits = answers(model, batch)
            surprise += F.cross_entropy(word_logits, batch.targets, reduction="sum").item()
            right += int((word_logits.argmax(-1) == batch.targets).sum())
            asked += batch.tokens
            if next_logits is not None and batch.next is not None:
                judged += int((next_logits.argmax(-1) == batch.next).sum())
                pairs += len(next_logits)
        found = {
            "masked_accuracy": right / asked if asked else math.nan,
            "masked_perplexity": math.exp(min(surprise / asked, 700.0)) if asked else math.nan,
        }
        return found | ({"next_accuracy": judged / pairs} if pairs else {})


def answers(model: Any, batch: MaskedBatch) -> tuple[Tensor, Tensor | None]:
    """Logits of the hidden words (M, V), and of the pairs (B, 2) where they are asked for."""
    read = model.read(batch.ids, batch.segment_ids)
    hidden = read.hidden.flatten(0, 1)[batch.positions]  # (M, D)
    return model.word_logits(hidden), None if batch.next is None else model.next_logits(read.whole)
