"""Evaluate a ViLBERT: on the user's images, on the validation data of its run, or on synthetic scenes.

In a scene it is known which object each word names, so attention is scored too: how much of a word's co-attention, in
each head, is on that object, against chance.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.caption_splits import read_listed
from regard.data.readers.captions import CaptionedImage
from regard.data.readers.easy_vqa import read_easy_vqa
from regard.errors import DataError
from regard.tasks.base import EvaluationRequest
from regard.tasks.run_settings import validation_of
from regard.tasks.vision_language.data import ImageDataConfig, captioned_split
from regard.tasks.vision_language.evaluate_scenes import score_attention, score_pairs, score_questions, score_retrieval
from regard.tasks.vision_language.pipeline import (
    ImageTextMatcher,
    Pointer,
    VisionLanguagePipeline,
    VisualQuestionAnswering,
)
from regard.tasks.vision_language.questions import accuracies
from regard.tasks.vision_language.scenes import TRUTH_LABELS, QuestionForm

NUM_CANDIDATES = 100  # images among which the right one is retrieved


def evaluate_retrieval(matcher: ImageTextMatcher, request: EvaluationRequest) -> dict[str, Any]:
    """Recall of the right image, among 100 or `limit`, for its first caption, and of the caption for its image."""
    if request.paths:
        bad = BadRows()
        return _score_captioned(matcher, read_listed(request.paths, bad), bad, request.limit)
    run = validation_of(request.folder, "the folder of images and the file of captions")
    if run.data:
        bad = BadRows()
        settings = ImageDataConfig.model_validate(run.settings["data"] | {"on_error": "skip"})
        return _score_captioned(matcher, captioned_split(run.data, settings, bad)[1], bad, request.limit)
    return score_retrieval(matcher, request.limit or NUM_CANDIDATES) | _attention(matcher)


def evaluate_answers(pipeline: VisualQuestionAnswering | Pointer, request: EvaluationRequest) -> dict[str, Any]:
    """Accuracy, overall and by kind of question; `limit` counts questions of a folder, or scenes."""
    run = None if request.paths else validation_of(request.folder, "a folder in the format of easy-vqa")
    if run is None or run.data:
        return _score_folder(pipeline, request.paths or run.data, request.limit)  # type: ignore[union-attr]
    data = run.settings["data"]
    ask: QuestionForm = "questions"
    if isinstance(pipeline, Pointer):
        ask = "phrases"
    elif pipeline.labels == TRUTH_LABELS:
        ask = "statements"
    return score_questions(pipeline, ask, request.limit or data["validation"], data.get(f"{ask}_per_scene", 0))


def _score_captioned(
    matcher: ImageTextMatcher, captioned: Sequence[CaptionedImage], bad: BadRows, limit: int | None
) -> dict[str, Any]:
    """On the first captions of these images; `bad` are the lines that were left out."""
    found = captioned[: limit or NUM_CANDIDATES]
    scores = score_pairs(matcher, [one.captions[0] for one in found], [matcher.regions_of(one.image) for one in found])
    return scores | ({"bad_lines": bad.summary()} if bad.count else {})


def _score_folder(
    pipeline: VisualQuestionAnswering | Pointer, paths: Sequence[Path], limit: int | None
) -> dict[str, Any]:
    """On the test questions of a folder."""
    if len(paths) != 1 or not isinstance(pipeline, VisualQuestionAnswering):
        raise DataError(
            f"got {', '.join(map(str, paths))}, wanted one folder in the format of easy-vqa, and a model for "
            "visual-question-answering"
        )
    bad = BadRows()
    questions = read_easy_vqa(paths[0], on_error="skip", report=bad).validation[:limit]
    images = {path: pipeline.regions_of(path) for path in {one.image for one in questions}}
    found = pipeline.run_all([one.text for one in questions], [images[one.image] for one in questions])
    right: dict[str, list[bool]] = defaultdict(list)
    for one, answer in zip(questions, found, strict=True):
        right[one.kind].append(answer.answer == one.answer)
    return {"questions": len(questions), **accuracies(right), **({"bad_lines": bad.summary()} if bad.count else {})}


def _attention(pipeline: VisionLanguagePipeline) -> dict[str, Any]:
    """Attention on the object that a word names: the mean of all co-attention heads, the best of them, and each."""
    heads = score_attention(pipeline)
    mean, best, chance = sum(one.mass for one in heads) / len(heads), max(one.mass for one in heads), heads[0].chance
    return {
        "attention_on_object": mean,
        "attention_chance": chance,
        "attention_times_chance": mean / chance,
        "attention_of_best_head": best,
        "attention_on_image": sum(one.whole for one in heads) / len(heads),
        "by_head": [
            {
                "layer": one.co_attention + 1,
                "head": one.head + 1,
                "on_object": one.mass,
                "times_chance": one.mass / one.chance,
            }
            for one in heads
        ],
    }
