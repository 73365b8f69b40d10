"""Training on images with captions (Lu 2019, 3.1): masked tokens, masked regions, and image-text matching.

Works with any model whose `model.encode(ids, segment_ids, regions, boxes)` returns `.hidden` (B, T, D) and `.regions`
(B, R, E), with token logits `model.token_logits(hidden)` (N, V), region logits `model.region_logits(regions)` (N, C) or
features (N, F), and matching logits `model.matching_logits(found)` (B,). Retrieval (4.1) needs only the first and the
last.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import DataPosition
from regard.inspection.capture import capture
from regard.tasks.vision_language.dataset import MASKED, NEAR, TRUE, ImageTextBatch, ImageTextData

GUIDED = "encoder.co_attention_layers.0.text_co_attention.attention.weights"
MIN_WEIGHT = 1e-6  # of attention: its logarithm stays finite


class Predictions(NamedTuple):
    """The model's outputs for what is masked, and for the pairs."""

    tokens: Tensor  # (M, V)
    regions: Tensor  # (G, C) or (G, F)
    matches: Tensor  # (B,)


class ImageTextPretraining:
    """Image-text pretraining as the training loop needs it."""

    name = "image-text-pretraining"
    unit = "pairs"

    def __init__(self, data: ImageTextData) -> None:
        self.data = data

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, ImageTextBatch]]:
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> None:
        """None: texts and masks differ in every epoch, without end."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[ImageTextBatch]:
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: ImageTextBatch) -> Tensor:
        """Per pair the mean loss of masked tokens, of masked regions and of matching, with equal weights.

        With guided attention, one head of the first co-attention layer learns where each word points (Garg 2019).
        """
        counts = batch.to_predict
        weight = self.data.config.guided_attention if model.training and len(batch.naming) else 0.0
        with ExitStack() as stack:
            captured = stack.enter_context(capture(model, GUIDED, gradients=True)) if weight else None
            found = predict(model, batch)
        loss = _matching_loss(found.matches, batch)
        if counts.tokens:
            loss = loss + F.cross_entropy(found.tokens.float(), batch.targets, reduction="sum") / counts.tokens
        if counts.regions:
            loss = loss + _region_loss(found.regions.float(), batch.region_targets) / counts.regions
        if captured is not None:
            loss = loss + weight * _attention_loss(captured[GUIDED][0], batch) / counts.naming
        return batch.tokens * loss

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[ImageTextBatch], generate: Any) -> dict[str, float]:
        """Accuracy of masked tokens, of the classes of masked and of visible regions, of matching, and of matching on
        hard negatives (captions that are wrong by a word). Regions without classes have a squared error instead."""
        masked_tokens, masked_regions, visible, pairs, hard = _Mean(), _Mean(), _Mean(), _Mean(), _Mean()
        numbers = False
        for batch in batches:
            found = predict(model, batch)
            masked_tokens.add(found.tokens.argmax(-1) == batch.targets)
            numbers = batch.region_targets.is_floating_point()
            right = _region_scores(found.regions, batch.region_targets)
            blank = (batch.regions.flatten(0, 1)[batch.region_positions] == 0).all(-1)
            masked_regions.add(right[blank])
            visible.add(right[~blank])
            correct = (found.matches > 0) == (batch.kinds == TRUE)
            pairs.add(correct[batch.kinds != MASKED])
            hard.add(correct[batch.kinds == NEAR])
        what = "error" if numbers else "accuracy"
        named = {
            "masked_accuracy": masked_tokens,
            f"masked_region_{what}": masked_regions,
            f"visible_region_{what}": visible,
            "matching_accuracy": pairs,
        }
        metrics = {name: mean.value for name, mean in named.items()}
        return metrics | ({"hard_negative_accuracy": hard.value} if hard.count else {})


class RetrievalTraining(ImageTextPretraining):
    """Image-text matching alone, with nothing masked (PairingConfig.matching_share=1)."""

    name = "retrieval"

    def loss(self, model: Any, batch: ImageTextBatch) -> Tensor:
        return batch.tokens * _matching_loss(matching_logits(model, batch), batch)

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[ImageTextBatch], generate: Any) -> dict[str, float]:
        """Accuracy of matching, on all pairs and on hard negatives."""
        pairs, hard = _Mean(), _Mean()
        for batch in batches:
            correct = (matching_logits(model, batch) > 0) == (batch.kinds == TRUE)
            pairs.add(correct)
            hard.add(correct[batch.kinds == NEAR])
        found = {"matching_accuracy": pairs.value}
        return found | ({"hard_negative_accuracy": hard.value} if hard.count else {})


def _region_scores(found: Tensor, wanted: Tensor) -> Tensor:
    """(G,) whether the class is correct; for features, the squared error."""
    return (found - wanted).square().mean(-1) if wanted.is_floating_point() else found.argmax(-1) == wanted


def predict(model: Any, batch: ImageTextBatch) -> Predictions:
    read = model.encode(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
    masked_hidden = read.hidden.flatten(0, 1)[batch.positions]  # (M, D)
    regions = model.region_logits(read.regions).flatten(0, 1)[batch.region_positions]  # (G, C)
    return Predictions(model.token_logits(masked_hidden), regions, model.matching_logits(read))


def matching_logits(model: Any, batch: ImageTextBatch) -> Tensor:
    """(B,) how well each text matches its image."""
    found: Tensor = model.matching_logits(model.encode(batch.ids, batch.segment_ids, batch.regions, batch.boxes))
    return found


def _matching_loss(logits: Tensor, batch: ImageTextBatch) -> Tensor:
    """The mean over the pairs that are not masked; zero where there are none."""
    logits = logits.float()
    if not len(batch.judged):
        return logits.sum() * 0
    is_true = (batch.kinds[batch.judged] == TRUE).to(logits)
    losses = F.binary_cross_entropy_with_logits(logits[batch.judged], is_true, reduction="sum")
    return losses / batch.to_predict.matches


def _attention_loss(weights: Tensor, batch: ImageTextBatch) -> Tensor:
    """-log of the first head's attention (B, H, T, R) to the region that a token names, summed over such tokens."""
    naming = weights[:, 0].flatten(0, 1)[batch.naming]  # (A, R)
    return -naming.float().gather(1, batch.named[:, None]).clamp(min=MIN_WEIGHT).log().sum()


def _region_loss(found: Tensor, wanted: Tensor) -> Tensor:
    """Summed over the regions: of their classes the cross-entropy, of their features the mean squared error."""
    if wanted.is_floating_point():
        return F.mse_loss(found, wanted, reduction="sum") / wanted.shape[1]
    return F.cross_entropy(found, wanted, reduction="sum")


class _Mean:
    """A running mean."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, values: Tensor) -> None:
        self.total += float(values.sum())
        self.count += len(values)

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else math.nan
