"""Score a ViLBERT on validation scenes: retrieval, answers, and the attention of words on the objects they name."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.regions import ImageRegions, collate_regions
from regard.errors import InputError
from regard.inspection.capture import capture
from regard.metrics.retrieval import recall_at
from regard.runtime import runtime_of
from regard.synthetic.scenes.captions import Caption, caption
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.vocabulary import ANSWERS
from regard.tasks.vision_language.pipeline import (
    ImageTextMatcher,
    Pointer,
    VisionLanguagePipeline,
    VisualQuestionAnswering,
)
from regard.tasks.vision_language.questions import accuracies
from regard.tasks.vision_language.scenes import QuestionForm, caption_text, first_scenes, questions_about, scene_regions


def score_retrieval(matcher: ImageTextMatcher, count: int = 100) -> dict[str, Any]:
    """R@1, R@5 and R@10 among the first `count` validation scenes and their canonical captions, in both directions."""
    scenes = first_scenes("validation", count)
    images = [scene_regions(scene, matcher.model.config.vision) for scene in scenes]
    return score_pairs(matcher, [caption_text(caption(scene)) for scene in scenes], images)


def score_pairs(matcher: ImageTextMatcher, texts: Sequence[str], images: Sequence[ImageRegions]) -> dict[str, Any]:
    """The same for any texts, each with its own image."""
    scores = matcher.scores(texts, images)
    found: dict[str, Any] = {"images": len(images)}
    found |= {f"text_to_image_{name}": value for name, value in recall_at(scores).items()}
    return found | {f"image_to_text_{name}": value for name, value in recall_at(scores.T).items()}


def score_questions(
    pipeline: VisualQuestionAnswering | Pointer, ask: QuestionForm, count: int = 300, each: int = 6
) -> dict[str, Any]:
    """Accuracy on questions about the first `count` validation scenes, overall and by kind."""
    questions, images = [], []
    for scene in first_scenes("validation", count):
        some = questions_about(scene, ask, each)
        questions += some
        images += [scene_regions(scene, pipeline.model.config.vision)] * len(some)
    _check_head(pipeline, ask)
    logits = pipeline.logits(pipeline.encode([one.text for one in questions]), images)
    right: dict[str, list[bool]] = defaultdict(list)
    for one, row in zip(questions, logits, strict=True):
        right[one.kind].append(int(row.argmax()) == one.target)
    return {"questions": len(questions), **accuracies(right)}


def _check_head(pipeline: Any, ask: QuestionForm) -> None:
    if ask == "phrases":
        fits = isinstance(pipeline, Pointer) and not pipeline.model.config.vision.grid
    else:
        labels = getattr(pipeline, "labels", ())
        fits = labels == ANSWERS if ask == "questions" else len(labels) == 2
    if not fits:
        raise InputError(f"this model, a {pipeline.kind}, was not trained on {ask} of scenes")


@dataclass(frozen=True)
class HeadAttention:
    """How much attention a word gives to the object it names, in one head of one co-attention layer, on average."""

    co_attention: int
    head: int
    mass: float  # from 0 to 1
    chance: float  # its value where attention is uniform over the regions
    whole: float  # the attention on the region of the whole image


def score_attention(pipeline: VisionLanguagePipeline, count: int = 100) -> list[HeadAttention]:
    """For each head, the attention of the words of canonical captions on the regions of the objects they name."""
    scenes = first_scenes("validation", count)
    found = [one for scene in scenes for one in _attention_on_objects(pipeline, scene, caption(scene))]
    masses, wholes, chances = zip(*found, strict=True)
    mean, whole, chance = torch.stack(masses).mean(0), torch.stack(wholes).mean(0), float(np.mean(chances))
    return [
        HeadAttention(co_attention, head, float(mean[co_attention, head]), chance, float(whole[co_attention, head]))
        for co_attention in range(mean.shape[0])
        for head in range(mean.shape[1])
    ]


@torch.inference_mode()
def _attention_on_objects(
    pipeline: VisionLanguagePipeline, scene: Scene, caption_of_scene: Caption
) -> list[tuple[Tensor, Tensor, float]]:
    """For each token that names an object: its attention (layers, heads) on the object, and on the whole image; and
    chance."""
    vision = pipeline.model.config.vision
    image = scene_regions(scene, vision)
    row = pipeline.tokenizer.encode_words(list(caption_of_scene.words), max_length=pipeline.model.config.context)
    shown = collate_regions([image])
    with capture(pipeline.model, "*text_co_attention.attention.weights") as captured:
        given = torch.tensor([row.ids]), torch.tensor([row.segment_ids]), shown.features, shown.boxes
        pipeline.model.encode(*map(runtime_of(pipeline.model).move, given))
    weights = torch.stack([one[0] for (one,) in captured.values()]).float().cpu()  # (layers, H, T, R)
    shows = torch.from_numpy(_regions_of_objects(scene, image.boxes, bool(vision.grid)))  # (objects, R)
    found = []
    for position, word in enumerate(row.word_ids):
        thing = None if word is None else caption_of_scene.regions[word]
        if thing is not None and shows[thing].any():
            attention = weights[:, :, position]
            on_object = attention[:, :, shows[thing]].sum(-1)
            found.append((on_object, attention[:, :, 0], float(shows[thing].float().mean())))
    return found


def _regions_of_objects(scene: Scene, boxes: np.ndarray, cells: bool) -> np.ndarray:
    """Which regions (objects, R) show an object: its own box, or the cells whose center is in its box."""
    if not cells:
        return np.eye(len(scene.things), len(boxes), k=1, dtype=bool)
    centers = (boxes[:, :2] + boxes[:, 2:4]) / 2 * scene.side
    found: Sequence[np.ndarray] = [
        np.all((centers >= thing.box[:2]) & (centers < thing.box[2:]), axis=1) for thing in scene.things
    ]
    shows = np.stack(found)
    shows[:, 0] = False  # the whole image shows all of them
    return shows
