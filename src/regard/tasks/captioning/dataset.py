"""Batches of images with captions: pixels as bytes and captions as ids, of the user's images or of drawn scenes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import DataPosition, bucket_by_length, collate_padded, iterate_epochs, random_uint64
from regard.data.stores.images import ImageStore
from regard.synthetic.scenes.captions import captions
from regard.synthetic.scenes.scene import Scenes

VALIDATION_SEED = 0  # of the held-out scenes, the same for every run
CANONICAL_CAPTION_TOKENS = 27  # of the longest, eos included: four objects and three relations
PARAPHRASE_TOKENS = 48  # of the longest paraphrase


class CaptionTokenizer(Protocol):
    """What is needed of a tokenizer."""

    pad_id: int
    bos_id: int
    eos_id: int

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...


@dataclass(frozen=True)
class CaptionBatch:
    """Images and captions as tensors. B rows, T positions."""

    pixels: Tensor  # (B, side, side, 3) of uint8
    target_in: Tensor  # (B, T) bos and ids: what the decoder reads
    target_out: Tensor  # (B, T) ids and eos: what it should predict
    references: list[list[str]]  # all captions of each row's image
    tokens: int  # positions that are not padding


@dataclass(frozen=True)
class CaptionCollator:
    """Makes batches; captions get a bos or eos id and padding."""

    bos_id: int
    eos_id: int
    pad_id: int

    def batch(
        self, pixels: np.ndarray, captions: Sequence[np.ndarray | Sequence[int]], references: list[list[str]]
    ) -> CaptionBatch:
        """One image and one caption a row."""
        # The target's half of a batch of pairs whose sources are empty.
        rows = collate_padded(
            [((), ids) for ids in captions], range(len(captions)), self.bos_id, self.eos_id, self.pad_id
        )
        return CaptionBatch(torch.tensor(pixels), rows.target_in, rows.target_out, references, rows.tokens)


class CaptionedPart:
    """Prepared images, and the captions of each: one side of the split."""

    def __init__(
        self, images: ImageStore, texts: Sequence[Sequence[str]], ids: Sequence[Sequence[Sequence[int]]]
    ) -> None:
        """`texts[row]` and `ids[row]` are the captions of the image in that row."""
        assert len(images) == len(texts) == len(ids), (len(images), len(texts), len(ids))
        self.images, self.texts = images, texts
        several = [len(captions) for captions in ids]
        flat = [caption for captions in ids for caption in captions]
        self.row_of = np.repeat(np.arange(len(ids)), several)  # the image of each caption
        self.first = np.cumsum([0, *several[:-1]])  # the first caption of each image
        self.lengths = np.array([len(caption) for caption in flat], np.int64)
        self._ends = np.cumsum(self.lengths)
        self._ids = np.fromiter((number for caption in flat for number in caption), np.int32)

    def __len__(self) -> int:
        """The number of captions."""
        return len(self.lengths)

    def caption(self, index: int) -> np.ndarray:
        return self._ids[self._ends[index] - self.lengths[index] : self._ends[index]]


class CaptionedImages:
    """The user's images to train on and held-out ones. `cells` is how many positions an image counts for."""

    def __init__(
        self, training: CaptionedPart, validation: CaptionedPart, collator: CaptionCollator, cells: int
    ) -> None:
        self.training, self.validation, self.collator, self.cells = training, validation, collator, cells

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, CaptionBatch]]:
        """Every caption once an epoch, with its image; the order is a pure function of (seed, epoch, index)."""
        for position, indices in iterate_epochs(lambda epoch: self._plan(max_tokens, seed, epoch), start):
            yield position, self._batch(self.training, indices)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> int:
        return len(self._plan(max_tokens, seed, 0))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]:
        """The held-out images, or the first `most`, each once with its first caption."""
        first = self.validation.first[:most]
        for indices in self._bucketed(self.validation.lengths[first], max_tokens, 0, 0):
            yield self._batch(self.validation, first[indices])

    def _plan(self, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        return self._bucketed(self.training.lengths, max_tokens, seed, epoch)

    def _bucketed(self, lengths: np.ndarray, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        return bucket_by_length(
            np.full_like(lengths, self.cells), lengths, max_tokens=max_tokens, seed=seed, epoch=epoch
        )

    def _batch(self, part: CaptionedPart, indices: np.ndarray) -> CaptionBatch:
        rows = part.row_of[indices]
        references = [list(part.texts[row]) for row in rows]
        return self.collator.batch(part.images[rows], [part.caption(int(index)) for index in indices], references)


class CaptionedScenes:
    """Scenes drawn when they are needed, never stored, never twice the same; a fixed number is held out.

    `cells` is how many positions an image counts for, `captions_per_scene` how many captions a scene has.
    """

    def __init__(
        self, tokenizer: CaptionTokenizer, *, side: int, cells: int, validation: int, captions_per_scene: int = 1
    ) -> None:
        self.tokenizer, self.side, self.cells, self.captions_per_scene = tokenizer, side, cells, captions_per_scene
        self.validation = validation
        self.collator = CaptionCollator(tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, CaptionBatch]]:
        """New scenes for each step; they, and the caption of each, are a pure function of (seed, step)."""
        scenes, rows, step = Scenes(seed, "training", self.side), self._rows(max_tokens), start.index
        while True:
            chosen = random_uint64(rows, seed, step, 0) % np.uint64(self.captions_per_scene)
            batch = self._batch(scenes, range(step * rows, (step + 1) * rows), chosen.tolist())
            step += 1
            yield DataPosition(start.epoch, step), batch

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> None:
        """None: scenes are drawn endlessly."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]:
        """The held-out scenes, or the first `most`, with their complete captions."""
        scenes, rows = Scenes(VALIDATION_SEED, "validation", self.side), self._rows(max_tokens)
        count = self.validation if most is None else min(most, self.validation)
        for start in range(0, count, rows):
            indices = range(start, min(start + rows, count))
            yield self._batch(scenes, indices, [0] * len(indices))

    def _rows(self, max_tokens: int) -> int:
        caption = CANONICAL_CAPTION_TOKENS if self.captions_per_scene == 1 else PARAPHRASE_TOKENS
        return max(1, max_tokens // (self.cells + caption))

    def _batch(self, scenes: Scenes, indices: Sequence[int], chosen: Sequence[int]) -> CaptionBatch:
        drawn = [scenes[index] for index in indices]
        texts_of_each = [[" ".join(one.words) for one in captions(scene, self.captions_per_scene)] for scene in drawn]
        ids = self.tokenizer.encode_batch([texts[number] for texts, number in zip(texts_of_each, chosen, strict=True)])
        return self.collator.batch(np.stack([scene.pixels() for scene in drawn]), ids, texts_of_each)
