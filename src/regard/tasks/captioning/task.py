"""Training a captioner: batches of images with captions, cross-entropy of the next token, BLEU-4 and CIDEr.

Works with any model whose `model(pixels, target)` returns logits (B, T, V); for doubly stochastic attention also
`model.forward_with_attention(pixels, target)`: logits and attention weights (B, H, T, P) of one pass.
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
from regard.tasks.generating import Generate, TargetTokenizer

MAX_NEW_TOKENS = 100  # of a caption


class Data(Protocol):
    """Where the batches come from: the user's images, or synthetic scenes."""

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, CaptionBatch]]: ...

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int | None: ...

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]: ...


class CaptioningConfig(Config):
    """The training objective of a captioner."""

    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of the target spread over all tokens")
    doubly_stochastic: float = Field(
        0.0, ge=0, description="λ of Σ_i (1 - Σ_t a_ti)²: over all words, each cell gets attention 1"
    )


class CaptionTraining:
    """Captioning as the training loop needs it; without data it only normalizes images and scores predictions."""

    name = "captioning"
    unit = "words"
    main_metric = "cider"

    def __init__(
        self, tokenizer: TargetTokenizer, config: CaptioningConfig | None = None, data: Data | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.config = config or CaptioningConfig()
        self.data = data

    # ------------------------------------------------ training

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, CaptionBatch]]:
        """Endless batches from a position on, each with the position after it."""
        assert self.data is not None, "made without data"
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int | None:
        assert self.data is not None, "made without data"
        return self.data.batches_per_epoch(max_tokens=max_tokens, seed=seed)

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]:
        """The validation images, or the first `most` of them, once."""
        assert self.data is not None, "made without data"
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: CaptionBatch) -> Tensor:
        """Cross-entropy summed over the tokens; in training with label smoothing and doubly stochastic attention."""
        weight = self.config.doubly_stochastic if model.training else 0.0
        pixels = normalize(batch.pixels)
        if not weight:
            return self._cross_entropy(model, model(pixels, batch.target_in), batch)
        logits, weights = model.forward_with_attention(pixels, batch.target_in)
        padding_mask = batch.target_out != self.tokenizer.pad_id
        return self._cross_entropy(model, logits, batch) + weight * doubly_stochastic_loss(
            weights.float(), padding_mask
        )

    def _cross_entropy(self, model: Any, logits: Tensor, batch: CaptionBatch) -> Tensor:
        return F.cross_entropy(
            logits.flatten(0, 1).float(),
            batch.target_out.flatten(),
            ignore_index=self.tokenizer.pad_id,
            label_smoothing=self.config.label_smoothing if model.training else 0.0,
            reduction="sum",
        )

    # ------------------------------------------------ decoding

    def read(self, pixels: np.ndarray) -> Tensor:
        """Pixels (B, side, side, 3) of uint8 as the model's input."""
        return normalize(pixels)

    def metrics(self, model: Any, loss: float, batches: Iterable[CaptionBatch], generate: Generate) -> dict[str, float]:
        """Scores of the captions that the model generates for these batches."""
        predictions: list[str] = []
        references: list[list[str]] = []
        for batch in batches:
            predictions += self.predict(model, batch, generate)
            references += batch.references
        return score_captions(predictions, references)

    def predict(self, model: Any, batch: CaptionBatch, generate: Generate) -> list[str]:
        """The best caption of each image of a batch."""
        found = generate(model, normalize(batch.pixels), [MAX_NEW_TOKENS] * len(batch.pixels))
        return [self.tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]


def doubly_stochastic_loss(weights: Tensor, padding_mask: Tensor) -> Tensor:
    """Σ_i (1 - Σ_t a_ti)² summed over images, averaged over heads (Xu 2015, eq. 14); the mask (B, T) is of tokens."""
    attention = (weights * padding_mask[:, None, :, None]).sum(2)  # (B, H, P)
    return (1 - attention).square().sum(-1).mean(1).sum()


def score_captions(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Exact match from 0 to 1, BLEU-4 from 0 to 100, CIDEr from 0 to 10."""
    return {
        "exact_match": exact_match(predictions, references),
        "bleu4": bleu4(predictions, references).value,
        "cider": cider(predictions, references).value,
    }
