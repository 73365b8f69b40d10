"""Pictures with captions, ready to learn from: pixels as bytes and captions as ids, in batches.

How a caption becomes ids and a picture bytes is handed in; the numbers a model reads are made of the bytes later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from regard.config import Config
from regard.data.batches import Position, bucketed, collate_padded, endless
from regard.data.readers.captions import BadPicture, Captioned, read_captions, split_validation
from regard.data.readers.pairs import BadLines
from regard.data.stores.images import PreparedPictures
from regard.errors import DataError

WANTED = "wanted the folder of the pictures and the file of their captions, such as photos/ captions.jsonl"


class CaptionDataConfig(Config):
    """How the user's pictures and captions are read, and what is asked of drawn scenes."""

    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad line: stop there, or skip it")
    longest: int = Field(60, ge=1, description="words of a caption; one with more is left out")
    validation: int = Field(1000, ge=1, description="pictures kept out of training; of the user's at most a tenth")
    whole_words: int = Field(0, ge=0, description="tokens of the vocabulary that are the commonest words, uncut")
    captions: int = Field(1, ge=1, le=9, description="true captions of a drawn scene; 1: the one that says it all")


def captioned_split(
    paths: Sequence[Path], settings: CaptionDataConfig, report: BadLines
) -> tuple[list[Captioned], list[Captioned]]:
    """What to train on and what is kept out, of the user's folder and file; too long captions are in `report`."""
    folder, file = folder_and_file(paths)
    found = read_captions(folder, file, on_error=settings.on_error, report=report)
    return split_validation(_short_enough(found, settings.longest, report), settings.validation)


def folder_and_file(paths: Sequence[Path]) -> tuple[Path, Path]:
    """Of what the user named, the folder of the pictures and the file of the captions, in either order."""
    folders, files = [path for path in paths if path.is_dir()], [path for path in paths if not path.is_dir()]
    if len(folders) != 1 or len(files) != 1:
        raise DataError(f"got {' '.join(map(str, paths)) or 'nothing'}; {WANTED}")
    return folders[0], files[0]


def _short_enough(found: Sequence[Captioned], longest: int, report: BadLines) -> list[Captioned]:
    kept = []
    for one in found:
        short = tuple(text for text in one.captions if len(text.split()) <= longest)
        for _ in range(len(one.captions) - len(short)):
            report.add(BadPicture(one.picture, 0, "long caption", f"more than {longest} words; raise data.longest"))
        if short:
            kept.append(replace(one, captions=short))
    if not kept:
        raise DataError(f"no caption has {longest} words or less; raise data.longest")
    return kept


@dataclass(frozen=True)
class CaptionBatch:
    """Pictures and captions as tensors. B rows, T positions."""

    pixels: Tensor  # (B, side, side, 3) of uint8
    target_in: Tensor  # (B, T) begin and ids: what the decoder reads
    target_out: Tensor  # (B, T) ids and end: what it should say
    references: list[list[str]]  # all true captions of each row's picture
    tokens: int  # positions that are not padding


@dataclass(frozen=True)
class Closing:
    """The symbols that captions are opened, closed and padded with."""

    bos_id: int
    eos_id: int
    pad_id: int

    def batch(
        self, pixels: np.ndarray, captions: Sequence[np.ndarray | Sequence[int]], references: list[list[str]]
    ) -> CaptionBatch:
        """One picture and one caption a row."""
        # The target's half of a batch of pairs whose sources are empty.
        rows = collate_padded(
            [((), ids) for ids in captions], range(len(captions)), self.bos_id, self.eos_id, self.pad_id
        )
        return CaptionBatch(torch.tensor(pixels), rows.target_in, rows.target_out, references, rows.tokens)


class CaptionedPart:
    """Prepared pictures, and the captions of each: one side of a split."""

    def __init__(
        self, pictures: PreparedPictures, texts: Sequence[Sequence[str]], ids: Sequence[Sequence[Sequence[int]]]
    ) -> None:
        """`texts[row]` and `ids[row]` are the captions of the picture in that row."""
        assert len(pictures) == len(texts) == len(ids), (len(pictures), len(texts), len(ids))
        self.pictures, self.texts = pictures, texts
        several = [len(captions) for captions in ids]
        flat = [caption for captions in ids for caption in captions]
        self.row_of = np.repeat(np.arange(len(ids)), several)  # the picture of each caption
        self.first = np.cumsum([0, *several[:-1]])  # the first caption of each picture
        self.lengths = np.array([len(caption) for caption in flat], np.int64)
        self._ends = np.cumsum(self.lengths)
        self._ids = np.fromiter((number for caption in flat for number in caption), np.int32)

    def __len__(self) -> int:
        """How many captions there are."""
        return len(self.lengths)

    def caption(self, index: int) -> np.ndarray:
        return self._ids[self._ends[index] - self.lengths[index] : self._ends[index]]


class CaptionedPictures:
    """The user's pictures to train on and those kept out. `cells` is how many positions a picture counts for."""

    def __init__(self, training: CaptionedPart, validation: CaptionedPart, closing: Closing, cells: int) -> None:
        self.training, self.validation, self.closing, self.cells = training, validation, closing, cells

    def training_batches(
        self, *, max_tokens: int, seed: int, start: Position
    ) -> Iterator[tuple[Position, CaptionBatch]]:
        """Every caption once an epoch, with its picture; the order is a pure function of (seed, epoch, index)."""
        for position, indices in endless(lambda epoch: self._plan(max_tokens, seed, epoch), start):
            yield position, self._batch(self.training, indices)

    def batches_an_epoch(self, *, max_tokens: int, seed: int) -> int:
        return len(self._plan(max_tokens, seed, 0))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]:
        """The pictures kept out, or the first `most`, each once with its first caption."""
        first = self.validation.first[:most]
        for indices in self._bucketed(self.validation.lengths[first], max_tokens, 0, 0):
            yield self._batch(self.validation, first[indices])

    def _plan(self, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        return self._bucketed(self.training.lengths, max_tokens, seed, epoch)

    def _bucketed(self, lengths: np.ndarray, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        return bucketed(np.full_like(lengths, self.cells), lengths, max_tokens=max_tokens, seed=seed, epoch=epoch)

    def _batch(self, part: CaptionedPart, indices: np.ndarray) -> CaptionBatch:
        rows = part.row_of[indices]
        references = [list(part.texts[row]) for row in rows]
        return self.closing.batch(part.pictures[rows], [part.caption(int(index)) for index in indices], references)
