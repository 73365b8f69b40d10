"""Pictures with captions as the lesson (Lu 2019, 3.1): hidden words, hidden regions, and whether the two are a pair.

Works with any model whose `model.read(ids, segment_ids, regions, boxes)` returns `.hidden` (B, T, D) and `.regions`
(B, R, E), with token logits `model.word_logits(hidden)` (N, V), region logits `model.region_logits(regions)` (N, C), or
(N, F) features, and a matching score `model.fit(read)` (B,). Retrieval (4.1) needs only the first and the last.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import DataPosition
from regard.tasks.vision_language.dataset import MASKED, NEAR, TRUE, ImageTextBatch, ImageTextData


class Answers(NamedTuple):
    """What a model says of all that is asked."""

    masked_words: Tensor  # (M, V)
    regions: Tensor  # (G, C) or (G, F)
    fits: Tensor  # (B,)


class ImageText:
    """The task, with its data."""

    name = "image-text"
    unit = "pairs"

    def __init__(self, data: ImageTextData) -> None:
        self.data = data

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, ImageTextBatch]]:
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> None:
        """Texts and masks are other ones in every pass: there is no end to them."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[ImageTextBatch]:
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: ImageTextBatch) -> Tensor:
        """For each pair the mean loss of words, that of regions and that of pairs to be judged, which count alike."""
        found = answers(model, batch)
        loss = _pair_loss(found.fits, batch.kinds)
        if len(batch.targets):
            loss = loss + F.cross_entropy(found.masked_words, batch.targets)
        if len(batch.region_targets):
            loss = loss + _region_loss(found.regions, batch.region_targets)
        return batch.tokens * loss

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[ImageTextBatch], generate: Any) -> dict[str, float]:
        """How often the hidden word and the kind of a hidden region are the likeliest, and that of one that is seen;
        how often a pair is judged rightly, and how often a near miss is. Where regions have no kinds, how far their
        features are off."""
        masked_words, masked_regions, seen, pairs, near = _Share(), _Share(), _Share(), _Share(), _Share()
        numbers = False
        for batch in batches:
            found = answers(model, batch)
            masked_words.add(found.masked_words.argmax(-1) == batch.targets)
            numbers = batch.region_targets.is_floating_point()
            right = _right_regions(found.regions, batch.region_targets)
            blank = (batch.regions.flatten(0, 1)[batch.region_positions] == 0).all(-1)
            masked_regions.add(right[blank])
            seen.add(right[~blank])
            judged = batch.kinds != MASKED
            fits = (found.fits > 0) == (batch.kinds == TRUE)
            pairs.add(fits[judged])
            near.add(fits[batch.kinds == NEAR])
        what = "error" if numbers else "accuracy"
        named = {
            "masked_accuracy": masked_words,
            f"region_{what}": masked_regions,
            f"seen_{what}": seen,
            "fit_accuracy": pairs,
        }
        measured = {name: share.mean for name, share in named.items()}
        return measured | ({"near_accuracy": near.mean} if near.count else {})


class Matching(ImageText):
    """The same pairs without masks (PairingConfig.matching_share=1): image-text matching alone."""

    name = "matching"

    def loss(self, model: Any, batch: ImageTextBatch) -> Tensor:
        return batch.tokens * _pair_loss(fits(model, batch), batch.kinds)

    @torch.no_grad()
    def metrics(self, model: Any, loss: float, batches: Iterable[ImageTextBatch], generate: Any) -> dict[str, float]:
        """How often a pair is judged rightly, and how often a near miss is."""
        pairs, near = _Share(), _Share()
        for batch in batches:
            right = (fits(model, batch) > 0) == (batch.kinds == TRUE)
            pairs.add(right)
            near.add(right[batch.kinds == NEAR])
        return {"fit_accuracy": pairs.mean} | ({"near_accuracy": near.mean} if near.count else {})


def _right_regions(found: Tensor, wanted: Tensor) -> Tensor:
    """(G,) whether the kind is the likeliest; of features, how far they are off."""
    return (found - wanted).square().mean(-1) if wanted.is_floating_point() else found.argmax(-1) == wanted


def answers(model: Any, batch: ImageTextBatch) -> Answers:
    read = model.read(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
    masked_hidden = read.hidden.flatten(0, 1)[batch.positions]  # (M, D)
    regions = model.region_logits(read.regions).flatten(0, 1)[batch.region_positions]  # (G, C)
    return Answers(model.word_logits(masked_hidden), regions, model.fit(read))


def fits(model: Any, batch: ImageTextBatch) -> Tensor:
    """(B,) how well each text goes with its picture."""
    found: Tensor = model.fit(model.read(batch.ids, batch.segment_ids, batch.regions, batch.boxes))
    return found


def _pair_loss(fits: Tensor, kinds: Tensor) -> Tensor:
    """The mean over the pairs that are judged; zero where none is."""
    judged = kinds != MASKED
    if not judged.any():
        return fits.sum() * 0
    return F.binary_cross_entropy_with_logits(fits[judged], (kinds[judged] == TRUE).to(fits))


def _region_loss(found: Tensor, wanted: Tensor) -> Tensor:
    return F.mse_loss(found, wanted) if wanted.is_floating_point() else F.cross_entropy(found, wanted)


class _Share:
    """A running mean."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, values: Tensor) -> None:
        self.total += float(values.sum())
        self.count += len(values)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan
