"""A ViLBERT in use: retrieves images for a text and texts for an image, answers questions, and points at regions.

An image is a file, its bytes, pixels (height, width, 3), or regions that were computed before (regard.data.regions).
Each model takes either cells of the image or bounding boxes in its pixels that come with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn

from regard.checkpoint import ModelFolder
from regard.data.regions import ImageRegions, collate_regions, image_regions
from regard.errors import FolderError, InputError
from regard.images.decoding import read_image
from regard.models.vilbert import ViLBERTConfig
from regard.runtime import runtime_of
from regard.tasks.encoders.encoding import pad_rows
from regard.tasks.show import Showable
from regard.tokenizers.wordpiece import Encoding, WordPieceTokenizer

Image = Path | str | bytes | np.ndarray | ImageRegions
Boxes = Sequence[Sequence[float]]
GRID_WITHOUT_BOXES = 4  # rows and columns of regions, for a model of boxes where none are given
MAX_BOXES = 1_000  # of an image: detectors find a few dozen
BATCH_SIZE = 256  # pairs of a text and an image


@dataclass(frozen=True)
class ImageTextMatch:
    """How well a text matches an image."""

    text: str
    score: float  # a logit, for ranking
    probability: float  # that they are a pair


@dataclass(frozen=True)
class RankedItem:
    """One of several texts or images, by its number among those given."""

    number: int
    score: float
    probability: float


@dataclass(frozen=True)
class VisualAnswer:
    """The answer to a question about an image."""

    question: str
    answer: str
    probability: float
    probabilities: dict[str, float]  # of all answers, the most probable first


@dataclass(frozen=True)
class GroundedPhrase:
    """The region that a phrase refers to."""

    phrase: str
    region: int  # 0 is the whole image, then the boxes or cells in their order
    box: tuple[float, ...]  # left, top, right and bottom as shares of the image
    probability: float
    probabilities: list[float]  # of all regions


class VisionLanguagePipeline(Showable):
    """What they share: `.model` is the nn.Module, `.tokenizer` its tokenizer; `truncated` counts too long texts."""

    def __init__(self, kind: str, model: nn.Module, tokenizer: WordPieceTokenizer) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.truncated = 0

    @classmethod
    def open(cls, folder: ModelFolder) -> "VisionLanguagePipeline":
        tokenizer = WordPieceTokenizer.load_saved(folder.folder)
        config = folder.model.config
        if not isinstance(config, ViLBERTConfig):
            raise FolderError(f"{folder.folder}: a {folder.kind} takes no images; wanted a ViLBERT")
        if tokenizer.vocab_size > config.vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {config.vocab_size}: not a pair"
            )
        return cls(folder.kind, folder.model, tokenizer)

    def regions_of(self, image: Image, boxes: Boxes | None = None) -> ImageRegions:
        """The regions of an image that this model takes: the boxes given, in pixels, or a grid of them where none are.

        A model that reads cells takes no boxes. One that was trained with boxes of objects answers better with them.
        """
        vision = self.model.config.vision
        if isinstance(image, ImageRegions):
            return self._check_regions(image)
        if vision.patch_size is None:
            raise InputError("this model takes features of regions, not pixels; give regions, as read_regions has them")
        if vision.grid and boxes:
            raise InputError(f"this model takes {vision.grid} × {vision.grid} cells of an image; leave the boxes out")
        pixels = _pixels(image)
        _check_boxes(boxes or (), pixels)
        return image_regions(
            pixels, boxes, cells=vision.grid or (0 if boxes else GRID_WITHOUT_BOXES), patch=vision.patch_size
        )

    def _check_regions(self, image: ImageRegions) -> ImageRegions:
        numbers = self.model.config.vision.feature_size
        if image.features.ndim != 2 or not len(image.features) or image.features.shape[1] != numbers:
            raise InputError(f"the regions are {image.features.shape}, wanted (R, {numbers}), one at least")
        if image.boxes.shape != (len(image.features), 5):
            raise InputError(f"the boxes are {image.boxes.shape}, wanted {(len(image.features), 5)}")
        return image

    @overload
    def encode(self, texts: str, *, truncate: bool = True) -> Encoding: ...  # type: ignore[overload-overlap]  # a str is a Sequence of str too

    @overload
    def encode(self, texts: Sequence[str], *, truncate: bool = True) -> list[Encoding]: ...

    def encode(self, texts: str | Sequence[str], *, truncate: bool = True) -> Encoding | list[Encoding]:
        """A text, or each of several, with special tokens; too long it loses its end, or is an error."""
        if isinstance(texts, str):
            return self.encode([texts], truncate=truncate)[0]
        max_length = int(self.model.config.context)
        rows = self.tokenizer.encode_batch(texts, max_length=max_length)
        long = [number for number, row in enumerate(rows, 1) if row.num_truncated]
        if long and not truncate:
            raise InputError(
                f"text {long[0]} has {rows[long[0] - 1].num_truncated + max_length:,} tokens, this model reads "
                f"{max_length:,}"
            )
        self.truncated += len(long)
        return rows

    def _rows(self, texts: Sequence[str]) -> list[Encoding]:
        """The same for a list alone: one text has no list of images."""
        if isinstance(texts, str):
            raise InputError("got one text, wanted a list of texts")
        return self.encode(texts)

    @torch.inference_mode()
    def logits(
        self,
        rows: Sequence[Encoding],
        images: Sequence[ImageRegions],
        compute: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None,
    ) -> list[Tensor]:
        """The model's output, or that of `compute`, for each row with its image; what it would be for the two alone."""
        assert len(rows) == len(images)
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i].ids), len(images[i].features)))
        found: dict[int, Tensor] = {}
        for start in range(0, len(order), BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            ids = pad_rows([rows[i].ids for i in batch], self.model.config.special_ids.pad_id)
            segment_ids = pad_rows([rows[i].segment_ids for i in batch], 0)
            shown = collate_regions([images[i] for i in batch])
            given = map(runtime_of(self.model).move, (ids, segment_ids, shown.features, shown.boxes))
            outputs = (compute or self.model)(*given).float().cpu()
            found |= dict(zip(batch, outputs, strict=True))
        return [found[i] for i in range(len(rows))]


class ImageTextMatcher(VisionLanguagePipeline):
    """`rank_images(text, images)` and `rank_texts(image, texts)` put the best first; `match` scores one pair."""

    def scores(self, texts: Sequence[str], images: Sequence[ImageRegions]) -> np.ndarray:
        """How well each text matches each image: logits (texts, images)."""
        rows = self._rows(texts)
        pairs = [(row, image) for row in rows for image in images]
        found = self.logits([row for row, _ in pairs], [image for _, image in pairs], self._match_logits)
        return np.array([float(one) for one in found]).reshape(len(rows), len(images))

    def rank_images(self, text: str, images: Sequence[ImageRegions]) -> list[RankedItem]:
        """All images, as `regions_of` returns them, the best for the text first."""
        return _ranked(self.scores([text], images)[0])

    def rank_texts(self, image: ImageRegions, texts: Sequence[str]) -> list[RankedItem]:
        """All texts, the best for the image first."""
        return _ranked(self.scores(texts, [image])[:, 0])

    def match(self, text: str, image: Image, boxes: Boxes | None = None) -> ImageTextMatch:
        score = float(self.scores([text], [self.regions_of(image, boxes)])[0, 0])
        return ImageTextMatch(text, score, _probability(score))

    run = match

    def _match_logits(self, *inputs: Tensor) -> Tensor:
        found: Tensor = self.model.matching_logits(self.model.encode(*inputs))
        return found


class VisualQuestionAnswering(VisionLanguagePipeline):
    """`run("what color is the star ?", "image.png").answer`; `.labels` are all answers it can give."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.model.config.labels)

    def run(self, question: str, image: Image, boxes: Boxes | None = None) -> VisualAnswer:
        return self.run_all([question], [self.regions_of(image, boxes)])[0]

    def run_all(self, questions: Sequence[str], images: Sequence[ImageRegions]) -> list[VisualAnswer]:
        """An answer to each question about its image."""
        logits = self.logits(self._rows(questions), images)
        return [self._answer(*one) for one in zip(questions, logits, strict=True)]

    def _answer(self, question: str, logits: Tensor) -> VisualAnswer:
        probabilities = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
        probabilities = dict(sorted(probabilities.items(), key=lambda one: -one[1]))
        answer, probability = next(iter(probabilities.items()))
        return VisualAnswer(question, answer, probability, probabilities)


class Pointer(VisionLanguagePipeline):
    """`run("the red star", "image.png", boxes).region` is the number of the region that the phrase refers to."""

    def run(self, phrase: str, image: Image, boxes: Boxes | None = None) -> GroundedPhrase:
        return self.run_all([phrase], [self.regions_of(image, boxes)])[0]

    def run_all(self, phrases: Sequence[str], images: Sequence[ImageRegions]) -> list[GroundedPhrase]:
        """The region that each phrase refers to in its image."""
        logits = self.logits(self._rows(phrases), images)
        found = []
        for phrase, image, one in zip(phrases, images, logits, strict=True):
            probabilities = one[: len(image.features)].softmax(-1).tolist()
            region = int(np.argmax(probabilities))
            box = tuple(float(number) for number in image.boxes[region, :4])
            found.append(GroundedPhrase(phrase, region, box, probabilities[region], probabilities))
        return found


def _pixels(image: Path | str | bytes | np.ndarray) -> np.ndarray:
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise InputError(f"the image is {image.dtype} {image.shape}, wanted uint8 (height, width, 3)")
        return image
    return np.asarray(read_image(image if isinstance(image, bytes) else Path(image)))


def _check_boxes(boxes: Boxes, pixels: np.ndarray) -> None:
    """InputError unless these are boxes inside the image: in a user's file they may be anything."""
    height, width, _ = pixels.shape
    if not _is_sequence(boxes):
        raise InputError(f"the boxes are {str(boxes)[:60]!r}, wanted a list of (left, top, right, bottom) in pixels")
    if len(boxes) > MAX_BOXES:
        raise InputError(f"got {len(boxes):,} boxes, at most {MAX_BOXES:,} wanted; leave out the less certain ones")
    for number, box in enumerate(boxes):
        numbers = _is_sequence(box) and len(box) == 4 and all(isinstance(one, Real) for one in box)
        inside = numbers and 0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height
        if not inside:
            raise InputError(
                f"box {number} is {str(box)[:60]}, wanted (left, top, right, bottom) inside the image of "
                f"{width} × {height} pixels"
            )


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _ranked(scores: np.ndarray) -> list[RankedItem]:
    order = np.argsort(-scores, kind="stable")
    return [RankedItem(int(number), float(scores[number]), _probability(scores[number])) for number in order]


def _probability(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))
