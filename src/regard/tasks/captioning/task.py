"""Captioning: a picture in, the next word of its caption as the lesson, whole captions out.

Works with any model that answers `model(pixels, target)` with logits (B, T, V), and `model.look(pixels, target)` with
logits and the weights (B, H, T, P) of one pass, where the weights are part of the lesson.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.config import Config
from regard.data.batches import DataPosition
from regard.images.preprocessing import normalize
from regard.metrics.captions import bleu4, cider, exact_match
from regard.tasks.captioning.dataset import CaptionBatch
from regard.tasks.translation.task import Generate, TargetTokenizer

LONGEST = 100  # tokens a caption may get


class Data(Protocol):
    """Where the batches come from: the user's pictures, or drawn scenes."""

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, CaptionBatch]]: ...

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int | None: ...

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]: ...


class CaptioningConfig(Config):
    """What is asked of a captioner while it learns."""

    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of the target spread over all tokens")
    doubly_stochastic: float = Field(
        0.0, ge=0, description="λ of Σ_i (1 - Σ_t a_ti)²: over all words, each cell is looked at once"
    )


class Captioning:
    """The task, with the tokenizer it writes by; with data to learn from, or without to run."""

    name = "captioning"
    unit = "words"

    def __init__(
        self, tokenizer: TargetTokenizer, config: CaptioningConfig | None = None, data: Data | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.config = config or CaptioningConfig()
        self.data = data

    # ------------------------------------------------ learning

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, CaptionBatch]]:
        """Batches without end from a position on, each with the position behind it."""
        assert self.data is not None, "this task was made without data"
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int | None:
        assert self.data is not None, "this task was made without data"
        return self.data.batches_per_epoch(max_tokens=max_tokens, seed=seed)

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]:
        """The pictures kept out, or the first `most` of them, once."""
        assert self.data is not None, "this task was made without data"
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: CaptionBatch) -> Tensor:
        """Cross-entropy summed over the batch's real tokens; while training smoothed, and with the second sum."""
        weight = self.config.doubly_stochastic if model.training else 0.0
        pixels = normalize(batch.pixels)
        if not weight:
            return self._surprise(model, model(pixels, batch.target_in), batch)
        logits, weights = model.look(pixels, batch.target_in)
        said = batch.target_out != self.tokenizer.pad_id
        return self._surprise(model, logits, batch) + weight * uneven(weights, said)

    def _surprise(self, model: Any, logits: Tensor, batch: CaptionBatch) -> Tensor:
        return F.cross_entropy(
            logits.flatten(0, 1),
            batch.target_out.flatten(),
            ignore_index=self.tokenizer.pad_id,
            label_smoothing=self.config.label_smoothing if model.training else 0.0,
            reduction="sum",
        )

    # ------------------------------------------------ running

    def read(self, pixels: np.ndarray) -> Tensor:
        """Pixels (B, side, side, 3) of uint8 as the numbers a model reads."""
        return normalize(pixels)

    def metrics(self, model: Any, loss: float, batches: Iterable[CaptionBatch], generate: Generate) -> dict[str, float]:
        """Free-running scores of what the model writes for these batches, on its own words."""
        predictions: list[str] = []
        references: list[list[str]] = []
        for batch in batches:
            predictions += self.predict(model, batch, generate)
            references += batch.references
        return score_captions(predictions, references)

    def predict(self, model: Any, batch: CaptionBatch, generate: Generate) -> list[str]:
        """The best caption of each picture of a batch."""
        found = generate(model, normalize(batch.pixels), [LONGEST] * len(batch.pixels))
        return [self.tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]


def uneven(weights: Tensor, said: Tensor) -> Tensor:
    """Σ_i (1 - Σ_t a_ti)² summed over pictures, averaged over heads (Xu 2015, eq. 14); `said` (B, T) are real words."""
    looked = (weights * said[:, None, :, None]).sum(2)  # (B, H, P)
    return (1 - looked).square().sum(-1).mean(1).sum()


def score_captions(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Shares for exact match, 0 to 100 for BLEU-4, 0 to 10 for CIDEr."""
    return {
        "exact_match": exact_match(predictions, references),
        "bleu4": bleu4(predictions, references).value,
        "cider": cider(predictions, references).value,
    }
