"""`regard run` on a ViLBERT: ranks images or texts, answers questions about an image, points at a region."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.data.regions import ImageRegions
from regard.errors import ImageError, InputError
from regard.files import read_json
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.image_inputs import image_paths
from regard.tasks.vision_language.pipeline import (
    GRID_WITHOUT_BOXES,
    ImageTextMatcher,
    Pointer,
    RankedItem,
    VisionLanguagePipeline,
    VisualQuestionAnswering,
)

logger = logging.getLogger(__name__)

MAX_SHOWN = 10  # of a ranking


def rank(pipeline: ImageTextMatcher, request: RunRequest) -> Iterator[Answer | Note]:
    """With --find the images of INPUT for a text; else the texts of INPUT for its first, an image."""
    if request.options.find is not None:
        yield from _rank_images(pipeline, request)
        return
    image, texts = image_and_texts(pipeline, request)
    for one in pipeline.rank_texts(image, texts)[:MAX_SHOWN]:
        yield _ranked("text", texts[one.number], one)


def _rank_images(pipeline: ImageTextMatcher, request: RunRequest) -> Iterator[Answer | Note]:
    boxes = _boxes(request)
    found: list[tuple[Path, ImageRegions]] = []
    for path in image_paths(request.inputs):
        try:
            found.append((path, _regions(pipeline, path, boxes)))
        except ImageError as error:
            yield Note(f"left out: {error}")
    if not found:
        raise InputError("no image could be read")
    for one in pipeline.rank_images(request.options.find, [regions for _, regions in found])[:MAX_SHOWN]:
        yield _ranked("image", str(found[one.number][0]), one)


def answer(pipeline: VisualQuestionAnswering, request: RunRequest) -> Iterator[Answer | Note]:
    """Answers to the questions of INPUT about its first, an image."""
    image, questions = image_and_texts(pipeline, request)
    for one in pipeline.run_all(questions, [image] * len(questions)):
        probabilities = dict(list(one.probabilities.items())[:MAX_SHOWN])
        data = {"question": one.question, "answer": one.answer, "probabilities": probabilities}
        yield Answer(f"{one.answer}  ({one.probability:.1%})", data)


def point(pipeline: Pointer, request: RunRequest) -> Iterator[Answer | Note]:
    """The regions that the phrases of INPUT mean in its first, an image."""
    image, phrases = image_and_texts(pipeline, request)
    for one in pipeline.run_all(phrases, [image] * len(phrases)):
        left, top, right, bottom = one.box
        where = f"from {left:.0%} to {right:.0%} across, {top:.0%} to {bottom:.0%} down"
        data = {"phrase": one.phrase, "box": list(one.box), "probability": one.probability}
        yield Answer(f"{one.phrase}: {where}  ({one.probability:.1%})", data)


def image_and_texts(pipeline: VisionLanguagePipeline, request: RunRequest) -> tuple[ImageRegions, Sequence[str]]:
    if len(request.inputs) < 2:
        raise InputError('wanted an image and a text about it: regard run MODEL image.png "a text"')
    return _regions(pipeline, Path(request.inputs[0]), _boxes(request)), request.inputs[1:]


def _boxes(request: RunRequest) -> dict[str, Any]:
    return {} if request.options.boxes is None else read_json(request.options.boxes)


def _regions(pipeline: VisionLanguagePipeline, path: Path, boxes: dict[str, Any]) -> ImageRegions:
    if not path.is_file():
        raise InputError(f"there is no image {path}; the first INPUT is an image, the others are texts")
    if not pipeline.model.config.vision.grid and path.name not in boxes:
        if boxes:
            raise InputError(f"--boxes has none of {path.name}; it has those of {_shortened(boxes)}")
        logger.warning(
            "no boxes are given, so %s is read as %s regions of a grid; the model was trained with boxes of objects: "
            "--boxes FILE.json has {%r: [[left, top, right, bottom], …]}",
            path,
            GRID_WITHOUT_BOXES**2,
            path.name,
        )
    return pipeline.regions_of(path, boxes.get(path.name))


def _shortened(names: Iterable[str]) -> str:
    """The first of some names."""
    first, rest = list(names)[:MAX_SHOWN], list(names)[MAX_SHOWN:]
    return ", ".join(first) + (", …" if rest else "")


def _ranked(kind: str, name: str, one: RankedItem) -> Answer:
    data = {kind: name, "score": one.score, "probability": one.probability}
    return Answer(f"{one.probability:6.1%}  {name}", data)
