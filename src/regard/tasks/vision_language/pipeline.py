"""A ViLBERT at work: finds pictures for a text and texts for a picture, answers questions, and points.

A picture is a file, its bytes, pixels (height, width, 3), or regions that are there already (regard.data.regions). What
a model sees of it is its own business: cells, or boxes that come with the picture, in its pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.checkpoint import ModelFolder
from regard.data.regions import ImageRegions, collate_regions, image_regions
from regard.errors import FolderError, InputError
from regard.images.decoding import read_image
from regard.models.vilbert import ViLBERTConfig
from regard.tasks.encoding import side_by_side as padded
from regard.tokenizers.wordpiece import Encoding, WordPieceTokenizer

Picture = Path | str | bytes | np.ndarray | ImageRegions
Boxes = Sequence[Sequence[float]]
PAIRS = 256  # of a text and a picture that are read at a time


@dataclass(frozen=True)
class Matched:
    """How well a text and a picture go together."""

    text: str
    score: float  # the larger the better, for ranking
    probability: float  # that they belong together


@dataclass(frozen=True)
class Ranked:
    """One of several texts or pictures, by its number among those given."""

    number: int
    score: float
    probability: float


@dataclass(frozen=True)
class Answered:
    """What a model answers to a question about a picture."""

    question: str
    answer: str
    probability: float
    probabilities: dict[str, float]  # of all answers, the likeliest first


@dataclass(frozen=True)
class Pointed:
    """The region that a phrase means."""

    phrase: str
    region: int  # 0 is the whole picture, then the boxes or cells in their order
    box: tuple[float, ...]  # left, top, right and bottom as shares of the picture
    probability: float
    probabilities: list[float]  # of all regions


class VisionLanguagePipeline:
    """What all of them share: `.model` is the nn.Module, `.tokenizer` its words; `cut` counts texts too long for it."""

    def __init__(self, kind: str, model: nn.Module, tokenizer: WordPieceTokenizer) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.cut = 0

    @classmethod
    def open(cls, folder: ModelFolder) -> "VisionLanguagePipeline":
        tokenizer = WordPieceTokenizer.load_saved(folder.folder)
        config = folder.model.config
        if not isinstance(config, ViLBERTConfig):
            raise FolderError(f"{folder.folder}: a {folder.kind} does not read beside pictures; wanted a ViLBERT")
        if tokenizer.vocab_size > config.vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {config.vocab_size}: no pair"
            )
        return cls(folder.kind, folder.model, tokenizer)

    def see(self, picture: Picture, boxes: Boxes | None = None) -> ImageRegions:
        """A picture as this model sees it."""
        seeing = self.model.config.seeing
        if isinstance(picture, ImageRegions):
            return self._own(picture)
        if seeing.patch is None:
            raise InputError("this model reads features of regions, not pixels; give regions, as read_regions has them")
        if not seeing.cells and not boxes:
            raise InputError("this model looks at boxes: give boxes=[(left, top, right, bottom), …] in pixels")
        if seeing.cells and boxes:
            raise InputError(f"this model sees {seeing.cells} × {seeing.cells} cells of a picture; leave the boxes out")
        pixels = _pixels(picture)
        _check_boxes(boxes or (), pixels)
        return image_regions(pixels, boxes, cells=seeing.cells, patch=seeing.patch)

    def _own(self, picture: ImageRegions) -> ImageRegions:
        numbers = self.model.config.seeing.numbers
        if picture.features.ndim != 2 or not len(picture.features) or picture.features.shape[1] != numbers:
            raise InputError(f"the regions are {picture.features.shape}, wanted (R, {numbers}), one at least")
        if picture.boxes.shape != (len(picture.features), 5):
            raise InputError(f"the boxes are {picture.boxes.shape}, wanted {(len(picture.features), 5)}")
        return picture

    def encode(self, texts: Sequence[str], *, truncate: bool = True) -> list[Encoding]:
        """The texts between their symbols; one that is too long loses its end, or without `truncate` is an error."""
        if isinstance(texts, str):
            raise InputError("got one text, wanted a list of texts")
        longest = int(self.model.config.context)
        rows = self.tokenizer.encode_batch(texts, max_length=longest)
        long = [number for number, row in enumerate(rows, 1) if row.num_truncated]
        if long and not truncate:
            raise InputError(
                f"text {long[0]} has {rows[long[0] - 1].num_truncated + longest:,} pieces, this model reads {longest:,}"
            )
        self.cut += len(long)
        return rows

    @torch.inference_mode()
    def said(
        self,
        rows: Sequence[Encoding],
        pictures: Sequence[ImageRegions],
        say: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None,
    ) -> list[Tensor]:
        """What the model says of each row beside its picture: what it would say of the two alone."""
        assert len(rows) == len(pictures)
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i].ids), len(pictures[i].features)))
        found: dict[int, Tensor] = {}
        for start in range(0, len(order), PAIRS):
            some = order[start : start + PAIRS]
            ids = padded([rows[i].ids for i in some], self.model.config.special_ids.pad_id)
            segment_ids = padded([rows[i].segment_ids for i in some], 0)
            shown = collate_regions([pictures[i] for i in some])
            answers = (say or self.model)(ids, segment_ids, shown.features, shown.boxes)
            found |= dict(zip(some, answers, strict=True))
        return [found[i] for i in range(len(rows))]


class ImageTextMatcher(VisionLanguagePipeline):
    """`rank_pictures(text, pictures)` and `rank_texts(picture, texts)` put the best first; `match` judges one pair."""

    def scores(self, texts: Sequence[str], pictures: Sequence[ImageRegions]) -> np.ndarray:
        """How well each text goes with each picture: (texts, pictures), logits."""
        rows = self.encode(texts)
        pairs = [(row, picture) for row in rows for picture in pictures]
        found = self.said([row for row, _ in pairs], [picture for _, picture in pairs], self._fit)
        return np.array([float(one) for one in found]).reshape(len(rows), len(pictures))

    def rank_pictures(self, text: str, pictures: Sequence[ImageRegions]) -> list[Ranked]:
        """All pictures, as `see` gives them, the likeliest for the text first."""
        return _ranked(self.scores([text], pictures)[0])

    def rank_texts(self, picture: ImageRegions, texts: Sequence[str]) -> list[Ranked]:
        """All texts, the likeliest for the picture first."""
        return _ranked(self.scores(texts, [picture])[:, 0])

    def match(self, text: str, picture: Picture, boxes: Boxes | None = None) -> Matched:
        score = float(self.scores([text], [self.see(picture, boxes)])[0, 0])
        return Matched(text, score, _probability(score))

    run = match

    def _fit(self, *inputs: Tensor) -> Tensor:
        found: Tensor = self.model.fit(self.model.read(*inputs))
        return found


class VisualQuestionAnswering(VisionLanguagePipeline):
    """`run("what color is the star ?", "picture.png").answer`; `.labels` are all answers it can give."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.model.config.labels)

    def run(self, question: str, picture: Picture, boxes: Boxes | None = None) -> Answered:
        return self.run_all([question], [self.see(picture, boxes)])[0]

    def run_all(self, questions: Sequence[str], pictures: Sequence[ImageRegions]) -> list[Answered]:
        """An answer to each question about its picture."""
        logits = self.said(self.encode(questions), pictures)
        return [self._answered(*one) for one in zip(questions, logits, strict=True)]

    def _answered(self, question: str, logits: Tensor) -> Answered:
        likely = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
        likely = dict(sorted(likely.items(), key=lambda one: -one[1]))
        answer, probability = next(iter(likely.items()))
        return Answered(question, answer, probability, likely)


class Pointer(VisionLanguagePipeline):
    """`run("the red star", "picture.png", boxes).region` is the number of the region that is meant."""

    def run(self, phrase: str, picture: Picture, boxes: Boxes | None = None) -> Pointed:
        return self.run_all([phrase], [self.see(picture, boxes)])[0]

    def run_all(self, phrases: Sequence[str], pictures: Sequence[ImageRegions]) -> list[Pointed]:
        """The region that each phrase means in its picture."""
        logits = self.said(self.encode(phrases), pictures)
        found = []
        for phrase, picture, one in zip(phrases, pictures, logits, strict=True):
            likely = one[: len(picture.features)].softmax(-1).tolist()
            region = int(np.argmax(likely))
            box = tuple(float(number) for number in picture.boxes[region, :4])
            found.append(Pointed(phrase, region, box, likely[region], likely))
        return found


def _pixels(picture: Path | str | bytes | np.ndarray) -> np.ndarray:
    if isinstance(picture, np.ndarray):
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
            raise InputError(f"the picture is {picture.dtype} {picture.shape}, wanted uint8 (height, width, 3)")
        return picture
    return np.asarray(read_image(picture if isinstance(picture, bytes) else Path(picture)))


def _check_boxes(boxes: Boxes, pixels: np.ndarray) -> None:
    height, width, _ = pixels.shape
    for number, box in enumerate(boxes):
        inside = len(box) == 4 and 0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height
        if not inside:
            raise InputError(
                f"box {number} is {tuple(box)}, wanted (left, top, right, bottom) inside the picture of "
                f"{width} × {height} pixels"
            )


def _ranked(scores: np.ndarray) -> list[Ranked]:
    order = np.argsort(-scores, kind="stable")
    return [Ranked(int(number), float(scores[number]), _probability(scores[number])) for number in order]


def _probability(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))
