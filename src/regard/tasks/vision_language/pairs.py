"""Batches of texts beside pictures: some with hidden words and regions, others to be judged, half of those false.

Where something is hidden the text is the picture's own: else neither side would know of the other. And where a pair is
to be judged nothing is hidden: else what is hidden would tell that it is true, or be the word that is false.

All of it is a function of (seed, epoch, index): a run can stop anywhere and go on. What is kept out is always asked
in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from regard.config import Config
from regard.data.batches import IGNORED, MARK, Position, bucketed, endless, num_samples
from regard.data.masking import MaskingConfig, PieceTable, mask_row
from regard.data.regions import UNKNOWN, Regions
from regard.errors import DataError

# Streams of random numbers, in training and kept out: which text a picture gets, and what is hidden.
TEXTS, MASKS, REGIONS, HELDOUT_TEXTS, HELDOUT_MASKS, HELDOUT_REGIONS = 8, 9, 10, 11, 12, 13
# What a pair is: its own text with something hidden; or to be judged, the picture's own text, another picture's, or its
# own but for a word.
HIDDEN, TRUE, FAR, NEAR = 0, 1, 2, 3
Pieces = Sequence[int]


class PairingConfig(Config):
    """What is hidden, and which texts are false."""

    masking: MaskingConfig = MaskingConfig()
    regions: float = Field(0.15, ge=0, le=1, description="share of the regions that are asked for")
    kept: float = Field(0.1, ge=0, le=1, description="of those, the share that shows itself; the others show nothing")
    judged: float = Field(0.5, ge=0, le=1, description="share of the pairs that are judged; in the others words hide")
    false: float = Field(0.5, ge=0, lt=1, description="of those that are judged, the share whose text is false")
    near: float = Field(0.5, ge=0, le=1, description="of those, the share of near misses, where there are any")


@dataclass(frozen=True)
class ImageTextBatch:
    """Texts beside pictures as tensors. B pairs, T positions, R regions; M words and G regions are asked for."""

    ids: Tensor  # (B, T) what the model reads
    segment_ids: Tensor  # (B, T) zeros
    regions: Tensor  # (B, R, F) what it sees
    boxes: Tensor  # (B, R, 5); all zeros: padding
    places: Tensor  # (M,) where the words that are asked for stand: row · T + position
    targets: Tensor  # (M,) what they are
    region_places: Tensor  # (G,) where the regions that are asked for stand: row · R + place
    region_targets: Tensor  # (G,) of which kind they are; or (G, F) what they show, where kinds are not known
    kinds: Tensor  # (B,) HIDDEN, TRUE, FAR or NEAR
    tokens: int  # B

    def to(self, device: torch.device | str) -> "ImageTextBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


@dataclass(frozen=True)
class Paired:
    """A picture by its number, and the text it is shown with."""

    picture: int
    text: Pieces
    kind: int


@dataclass(frozen=True)
class PicturesWithTexts:
    """Pictures, of each the texts that are true of it, and, if there are any, near misses. Pieces without symbols.

    Of the true texts the first ones, which are written as the near misses are, are drawn as often as all others
    together: else a text would be known to be false by its form. The very first says all of its picture, as those
    behind the first ones do: such a text is false of other pictures, and what says less may be true of many.
    """

    regions: Regions
    texts: Sequence[Sequence[Pieces]]
    near: Sequence[Sequence[Pieces]] | None = None
    alike: int = 1  # how many of the true texts are written as the near misses are

    def __post_init__(self) -> None:
        assert len(self.texts) == len(self.regions)
        if len(self.texts) < 2:
            raise DataError("one picture alone: no other has a text that is false of it; give more pictures")

    def __len__(self) -> int:
        return len(self.texts)

    def pairs(self, config: PairingConfig, numbers: tuple[int, ...]) -> list[Paired]:
        """A text for every picture, drawn by the numbers."""
        chance = num_samples(6 * len(self), *numbers).reshape(6, -1)
        judged, false, near, first = ((chance[row] >> np.uint64(11)) * 2.0**-53 for row in range(4))
        found = []
        for picture, (which, shift) in enumerate(zip(chance[4].tolist(), chance[5].tolist(), strict=True)):
            own = self._drawn(picture, first[picture], which)
            if judged[picture] >= config.judged:
                found.append(Paired(picture, own, HIDDEN))
            elif false[picture] >= config.false:
                found.append(Paired(picture, own, TRUE))
            elif self.near is not None and self.near[picture] and near[picture] < config.near:
                misses = self.near[picture]
                found.append(Paired(picture, misses[which % len(misses)], NEAR))
            else:
                found.append(self._far(picture, first[picture], which, shift))
        return found

    def _drawn(self, picture: int, first: float, which: int) -> Pieces:
        texts = self.texts[picture]
        some = texts[: self.alike] if first < 0.5 or len(texts) <= self.alike else texts[self.alike :]
        return some[which % len(some)]

    def _far(self, picture: int, first: float, which: int, shift: int) -> Paired:
        """A text that says all of another picture; one with the same words as one of its own may be true of it too."""
        for tried in range(len(self) - 1):
            other = (picture + 1 + (shift + tried) % (len(self) - 1)) % len(self)
            text = self.texts[other][0] if first < 0.5 else self._drawn(other, first, which)
            if tuple(sorted(text)) not in self._bags[picture]:
                return Paired(picture, text, FAR)
        raise DataError(f"the texts of picture {picture} are those of all pictures; wanted some that tell them apart")

    @cached_property
    def _bags(self) -> list[set[tuple[int, ...]]]:
        """The words of each picture's texts, whatever their order."""
        return [{tuple(sorted(text)) for text in texts} for texts in self.texts]


@dataclass(frozen=True)
class ImageTextData:
    """Pictures with texts to train on, and others kept out."""

    training: PicturesWithTexts
    validation: PicturesWithTexts
    table: PieceTable
    config: PairingConfig
    context: int

    def training_batches(
        self, *, max_tokens: int, seed: int, start: Position
    ) -> Iterator[tuple[Position, ImageTextBatch]]:
        """Batches without end, at most `max_tokens` words and regions each; each with the position behind it."""

        def plan(epoch: int) -> list[tuple[int, list[Paired]]]:
            pairs = self.training.pairs(self.config, (seed, epoch, TEXTS))
            return [
                (epoch, [pairs[i] for i in some])
                for some in self._batches(self.training, pairs, max_tokens, seed, epoch)
            ]

        for position, (epoch, pairs) in endless(plan, start):
            yield position, self._collate(self.training, pairs, (seed, epoch, MASKS), (seed, epoch, REGIONS))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[ImageTextBatch]:
        """The held-out pictures once, always with the same texts and masks; of `most` only the first so many."""
        pairs = self._validation_pairs[:most]
        for some in self._batches(self.validation, pairs, max_tokens, 0, 0):
            yield self._collate(
                self.validation, [pairs[i] for i in some], (0, 0, HELDOUT_MASKS), (0, 0, HELDOUT_REGIONS)
            )

    @cached_property
    def _validation_pairs(self) -> list[Paired]:
        return self.validation.pairs(self.config, (0, 0, HELDOUT_TEXTS))

    def _batches(
        self, data: PicturesWithTexts, pairs: Sequence[Paired], max_tokens: int, seed: int, epoch: int
    ) -> list[np.ndarray]:
        words = np.array([min(2 + len(pair.text), self.context) for pair in pairs])
        regions = data.regions.counts[[pair.picture for pair in pairs]]
        return bucketed(words - MARK, regions - MARK, max_tokens=max_tokens, seed=seed, epoch=epoch)

    def _collate(
        self, data: PicturesWithTexts, pairs: Sequence[Paired], words: tuple[int, ...], regions: tuple[int, ...]
    ) -> ImageTextBatch:
        texts = [
            np.array([self.table.bos_id, *pair.text[: self.context - 2], self.table.eos_id], np.int64) for pair in pairs
        ]
        ids = np.full((len(pairs), max(map(len, texts))), self.table.pad_id, np.int64)
        targets = np.full_like(ids, IGNORED)
        for row, (pair, text) in enumerate(zip(pairs, texts, strict=True)):
            ids[row, : len(text)] = text
            if pair.kind == HIDDEN:
                found = mask_row(text, self.table.words(text), self.config.masking, self.table, (*words, pair.picture))
                ids[row, : len(text)], targets[row, : len(text)] = found.ids, found.targets
        places = np.flatnonzero(targets != IGNORED)
        shown = data.regions.collate([pair.picture for pair in pairs])
        asked, blank = self._hidden(pairs, shown.boxes, regions)
        wanted = shown.features if shown.classes is None else shown.classes
        if shown.classes is not None:
            asked &= shown.classes != UNKNOWN
        region_places = asked.flatten().nonzero()[:, 0]
        return ImageTextBatch(
            ids=torch.from_numpy(ids),
            segment_ids=torch.zeros(ids.shape, dtype=torch.long),
            regions=shown.features.masked_fill(blank[:, :, None], 0.0),
            boxes=shown.boxes,
            places=torch.from_numpy(places),
            targets=torch.from_numpy(targets.ravel()[places]),
            region_places=region_places,
            region_targets=wanted.flatten(0, 1)[region_places],
            kinds=torch.tensor([pair.kind for pair in pairs]),
            tokens=len(pairs),
        )

    def _hidden(self, pairs: Sequence[Paired], boxes: Tensor, numbers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Which regions (B, R) are asked for, and which show nothing: most of those, and any whole picture of one."""
        most = boxes.shape[1]
        chance = np.stack([num_samples(2 * most, *numbers, pair.picture).reshape(2, -1) for pair in pairs])
        share = torch.from_numpy((chance >> np.uint64(11)) * 2.0**-53)  # (B, 2, R)
        asked = (share[:, 0] < self.config.regions) & boxes.any(-1)
        asked &= torch.tensor([pair.kind == HIDDEN for pair in pairs])[:, None]
        asked[:, 0] = False
        blank = asked & (share[:, 1] >= self.config.kept)
        blank[:, 0] = blank.any(1)
        return asked, blank
