"""Batches of texts with images: for pretraining and retrieval, and for questions about images.

A pretraining pair has masked words and regions, or it is for image-text matching, where half of the texts are false.
A masked pair always has the image's own text: else neither side could help to predict the other. A matching pair has
no masks: else a mask would reveal that the pair is true, or hide the one word that makes it false.

Everything is a function of (seed, epoch, index): a run can stop anywhere and be resumed. Held-out pairs are always
masked and paired in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from regard.config import Config
from regard.data.batches import (
    ADDED_TOKENS,
    IGNORE_INDEX,
    DataPosition,
    bucket_by_length,
    iterate_epochs,
    random_uint64,
    take_positions,
)
from regard.data.masking import MaskingConfig, MaskingVocab, mask_row
from regard.data.regions import UNKNOWN_CLASS, Regions
from regard.data.rows import Encoding, RowBatch, RowDataset
from regard.errors import DataError

# Streams of random numbers, for training and validation: the text of an image, masked words, masked regions.
TEXTS, MASKS, REGIONS, VALIDATION_TEXTS, VALIDATION_MASKS, VALIDATION_REGIONS = 8, 9, 10, 11, 12, 13
# Kinds of pair: masked; or for matching: the image's own text, another image's (a negative), or its own with one word
# changed (a near miss, that is, a hard negative).
MASKED, TRUE, FAR, NEAR = 0, 1, 2, 3
Ids = Sequence[int]


class PairingConfig(Config):
    """How much is masked, and how many texts are false."""

    masking: MaskingConfig = MaskingConfig()
    region_share: float = Field(0.15, ge=0, le=1, description="share of the regions to predict")
    visible_region_share: float = Field(0.1, ge=0, le=1, description="of those, the share that stays visible")
    matching_share: float = Field(0.5, ge=0, le=1, description="share of the pairs for matching; the others are masked")
    negative_share: float = Field(0.5, ge=0, lt=1, description="of the pairs for matching, the share with a false text")
    near_miss_share: float = Field(
        0.5, ge=0, le=1, description="of those, the share of near misses, where there are any"
    )
    guided_attention: float = Field(
        0.0, ge=0, description="weight of the loss of one head's attention to the region a word names, where known"
    )


class Counts(NamedTuple):
    """How many tokens, regions and matches of a batch are predicted, and how many tokens name a region."""

    tokens: int
    regions: int
    matches: int
    naming: int = 0


@dataclass(frozen=True)
class ImageTextBatch:
    """Texts with images as tensors. B pairs, T positions, R regions; M tokens and G regions to predict."""

    ids: Tensor  # (B, T) what the model reads
    segment_ids: Tensor  # (B, T) zeros
    regions: Tensor  # (B, R, F) features
    boxes: Tensor  # (B, R, 5); all zeros: padding
    positions: Tensor  # (M,) of the tokens to predict: row · T + position
    targets: Tensor  # (M,) their ids
    region_positions: Tensor  # (G,) of the regions to predict: row · R + region
    region_targets: Tensor  # (G,) their classes; or (G, F) their features, where classes are not known
    kinds: Tensor  # (B,) MASKED, TRUE, FAR or NEAR
    judged: Tensor  # (J,) the rows that are for matching: not MASKED
    naming: Tensor  # (A,) of the tokens that name a region, where it is known: row · T + position
    named: Tensor  # (A,) those regions
    tokens: int  # B
    counts: Counts | None = None  # of the whole batch, where these are some of its rows; so is B

    def take_rows(self, rows: slice) -> "ImageTextBatch":
        """The batch of these rows alone; its loss is their part of the loss of all."""
        positions, taken = take_positions(self.positions, rows, self.ids.shape[1])
        region_positions, taken_regions = take_positions(self.region_positions, rows, self.regions.shape[1])
        naming, taken_names = take_positions(self.naming, rows, self.ids.shape[1])
        return ImageTextBatch(
            ids=self.ids[rows],
            segment_ids=self.segment_ids[rows],
            regions=self.regions[rows],
            boxes=self.boxes[rows],
            positions=positions,
            targets=self.targets[taken],
            region_positions=region_positions,
            region_targets=self.region_targets[taken_regions],
            kinds=self.kinds[rows],
            judged=take_positions(self.judged, rows, 1)[0],
            naming=naming,
            named=self.named[taken_names],
            tokens=self.tokens,
            counts=self.to_predict,
        )

    @property
    def to_predict(self) -> Counts:
        """What the mean losses are over."""
        return self.counts or Counts(len(self.targets), len(self.region_targets), len(self.judged), len(self.naming))

    def to(self, device: torch.device | str) -> "ImageTextBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


@dataclass(frozen=True)
class Paired:
    """An image by its number, and the text it is paired with."""

    image: int
    text: Ids
    kind: int
    named: Ids = ()  # for each token the region it names, 0 for none; empty: not known


@dataclass(frozen=True)
class ImagesWithTexts:
    """Images, the true texts of each, and near misses if there are any. Ids without special ids.

    The first true texts have the form of the near misses and are drawn as often as all others together: else the form
    of a text would reveal that it is false. The very first is a complete description, as those after the first ones
    are: such a text is false of other images, while one that says less may be true of many.
    """

    regions: Regions
    texts: Sequence[Sequence[Ids]]
    near: Sequence[Sequence[Ids]] | None = None
    alike: int = 1  # how many of the true texts have the form of the near misses
    named: Sequence[Sequence[Ids]] | None = None  # for each token of each true text the region it names, 0 for none

    def __post_init__(self) -> None:
        assert len(self.texts) == len(self.regions)
        if len(self.texts) < 2:
            raise DataError("one image only: no other has a text that is false of it; give more images")

    def __len__(self) -> int:
        return len(self.texts)

    def pairs(self, config: PairingConfig, numbers: tuple[int, ...]) -> list[Paired]:
        """A text for every image, a function of the numbers."""
        chance = random_uint64(6 * len(self), *numbers).reshape(6, -1)
        matching, negative, near, first = ((chance[row] >> np.uint64(11)) * 2.0**-53 for row in range(4))
        found = []
        for image, (which, shift) in enumerate(zip(chance[4].tolist(), chance[5].tolist(), strict=True)):
            own = self._draw(image, first[image], which)
            named = () if self.named is None else self.named[image][own]
            if matching[image] >= config.matching_share:
                found.append(Paired(image, self.texts[image][own], MASKED, named))
            elif negative[image] >= config.negative_share:
                found.append(Paired(image, self.texts[image][own], TRUE, named))
            elif self.near is not None and self.near[image] and near[image] < config.near_miss_share:
                misses = self.near[image]
                found.append(Paired(image, misses[which % len(misses)], NEAR))
            else:
                found.append(self._far(image, first[image], which, shift))
        return found

    def _draw(self, image: int, first: float, which: int) -> int:
        """The number of a true text."""
        count = len(self.texts[image])
        if first < 0.5 or count <= self.alike:
            return which % min(self.alike, count)
        return self.alike + which % (count - self.alike)

    def _far(self, image: int, first: float, which: int, shift: int) -> Paired:
        """A complete description of another image; one with the same words as one of its own could be true of it."""
        for tried in range(len(self) - 1):
            other = (image + 1 + (shift + tried) % (len(self) - 1)) % len(self)
            text = self.texts[other][0 if first < 0.5 else self._draw(other, first, which)]
            if tuple(sorted(text)) not in self._bags[image]:
                return Paired(image, text, FAR)
        raise DataError(f"image {image} has the same texts as all others; wanted some that tell them apart")

    @cached_property
    def _bags(self) -> list[set[tuple[int, ...]]]:
        """The words of each image's texts, whatever their order."""
        return [{tuple(sorted(text)) for text in texts} for texts in self.texts]


@dataclass(frozen=True)
class ImageTextData:
    """Images with texts to train on, and held-out ones."""

    training: ImagesWithTexts
    validation: ImagesWithTexts
    table: MaskingVocab
    config: PairingConfig
    context: int

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, ImageTextBatch]]:
        """Endless batches of at most `max_tokens` tokens and regions; each with the position of the next batch."""

        def plan(epoch: int) -> list[tuple[int, list[Paired]]]:
            pairs = self.training.pairs(self.config, (seed, epoch, TEXTS))
            return [
                (epoch, [pairs[i] for i in some])
                for some in self._batches(self.training, pairs, max_tokens, seed, epoch)
            ]

        for position, (epoch, pairs) in iterate_epochs(plan, start):
            yield position, self._collate(self.training, pairs, (seed, epoch, MASKS), (seed, epoch, REGIONS))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[ImageTextBatch]:
        """The held-out images, or the first `most`, once, always with the same texts and masks."""
        pairs = self._validation_pairs[:most]
        for some in self._batches(self.validation, pairs, max_tokens, 0, 0):
            yield self._collate(
                self.validation, [pairs[i] for i in some], (0, 0, VALIDATION_MASKS), (0, 0, VALIDATION_REGIONS)
            )

    @cached_property
    def _validation_pairs(self) -> list[Paired]:
        return self.validation.pairs(self.config, (0, 0, VALIDATION_TEXTS))

    def _batches(
        self, data: ImagesWithTexts, pairs: Sequence[Paired], max_tokens: int, seed: int, epoch: int
    ) -> list[np.ndarray]:
        lengths = np.array([min(2 + len(pair.text), self.context) for pair in pairs])
        regions = data.regions.counts[[pair.image for pair in pairs]]
        return bucket_by_length(
            lengths - ADDED_TOKENS, regions - ADDED_TOKENS, max_tokens=max_tokens, seed=seed, epoch=epoch
        )

    def _collate(
        self, data: ImagesWithTexts, pairs: Sequence[Paired], masks: tuple[int, ...], regions: tuple[int, ...]
    ) -> ImageTextBatch:
        texts = [
            np.array([self.table.bos_id, *pair.text[: self.context - 2], self.table.eos_id], np.int64) for pair in pairs
        ]
        ids = np.full((len(pairs), max(map(len, texts))), self.table.pad_id, np.int64)
        targets = np.full_like(ids, IGNORE_INDEX)
        for row, (pair, text) in enumerate(zip(pairs, texts, strict=True)):
            ids[row, : len(text)] = text
            if pair.kind == MASKED:
                found = mask_row(text, self.table.word_ids(text), self.config.masking, self.table, (*masks, pair.image))
                ids[row, : len(text)], targets[row, : len(text)] = found.ids, found.targets
        named = np.zeros_like(ids)
        for row, pair in enumerate(pairs):
            some = pair.named[: self.context - 2]
            named[row, 1 : 1 + len(some)] = some
        positions, naming = np.flatnonzero(targets != IGNORE_INDEX), np.flatnonzero(named)
        shown = data.regions.collate([pair.image for pair in pairs])
        predicted, blank = self._masked_regions(pairs, shown.boxes, regions)
        targets_of_regions = shown.features if shown.classes is None else shown.classes
        if shown.classes is not None:
            predicted &= shown.classes != UNKNOWN_CLASS
        region_positions = predicted.flatten().nonzero()[:, 0]
        kinds = torch.tensor([pair.kind for pair in pairs])
        return ImageTextBatch(
            ids=torch.from_numpy(ids),
            segment_ids=torch.zeros(ids.shape, dtype=torch.long),
            regions=shown.features.masked_fill(blank[:, :, None], 0.0),
            boxes=shown.boxes,
            positions=torch.from_numpy(positions),
            targets=torch.from_numpy(targets.ravel()[positions]),
            region_positions=region_positions,
            region_targets=targets_of_regions.flatten(0, 1)[region_positions],
            kinds=kinds,
            judged=(kinds != MASKED).nonzero()[:, 0],
            naming=torch.from_numpy(naming),
            named=torch.from_numpy(named.ravel()[naming]),
            tokens=len(pairs),
        )

    def _masked_regions(
        self, pairs: Sequence[Paired], boxes: Tensor, numbers: tuple[int, ...]
    ) -> tuple[Tensor, Tensor]:
        """Which regions (B, R) are to predict, and which are blank: most of those, and the whole image where one is."""
        most = boxes.shape[1]
        chance = np.stack([random_uint64(2 * most, *numbers, pair.image).reshape(2, -1) for pair in pairs])
        share = torch.from_numpy((chance >> np.uint64(11)) * 2.0**-53)  # (B, 2, R)
        predicted = (share[:, 0] < self.config.region_share) & boxes.any(-1)
        predicted &= torch.tensor([pair.kind == MASKED for pair in pairs])[:, None]
        predicted[:, 0] = False
        blank = predicted & (share[:, 1] >= self.config.visible_region_share)
        blank[:, 0] = blank.any(1)
        return predicted, blank


@dataclass(frozen=True)
class ImageRowBatch(RowBatch):
    """Questions with their images. B rows, T positions, R regions."""

    regions: Tensor  # (B, R, F)
    boxes: Tensor  # (B, R, 5); all zeros: padding


class ImageRows(RowDataset):
    """Questions as rows of ids, each with the number of its image, its target class and the kind of question."""

    def __init__(
        self,
        encoded: Iterable[Encoding],
        targets: np.ndarray,
        padding: int,
        *,
        images: Sequence[int],
        regions: Regions,
        kinds: Sequence[str],
    ) -> None:
        super().__init__(encoded, targets, padding)
        assert len(self) == len(images) == len(kinds)
        self.images, self.regions, self.kinds = np.asarray(images, np.int64), regions, list(kinds)

    def plan(self, *, max_tokens: int, seed: int, epoch: int, most: int | None = None) -> list[np.ndarray]:
        """Every row once, bucketed by length, at most `max_tokens` tokens and regions a batch, padding included."""
        regions = self.regions.counts[self.images[:most]]
        return bucket_by_length(
            self.lengths[:most] - ADDED_TOKENS, regions - ADDED_TOKENS, max_tokens=max_tokens, seed=seed, epoch=epoch
        )

    def collate(self, indices: np.ndarray) -> ImageRowBatch:
        shown = self.regions.collate(self.images[indices])
        return ImageRowBatch(**vars(super().collate(indices)), regions=shown.features, boxes=shown.boxes)
