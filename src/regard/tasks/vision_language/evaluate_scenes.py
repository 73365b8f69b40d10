"""Score a ViLBERT on held-out scenes: retrieval, answers, and where its words look."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.regions import ImageRegions, collate_regions
from regard.errors import InputError
from regard.inspection.capture import watch
from regard.metrics.retrieval import recall_at
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
from regard.tasks.vision_language.scene_questions import Asking, asked_of, scenes_of, spoken
from regard.tasks.vision_language.scene_regions import scene_regions


def score_retrieval(matcher: ImageTextMatcher, count: int = 100) -> dict[str, Any]:
    """R@1, R@5 and R@10 among so many held-out scenes and their canonical captions, in both directions."""
    scenes = scenes_of("validation", count)
    pictures = [scene_regions(scene, matcher.model.config.seeing) for scene in scenes]
    return score_pairs(matcher, [spoken(caption(scene)) for scene in scenes], pictures)


def score_pairs(matcher: ImageTextMatcher, texts: Sequence[str], pictures: Sequence[ImageRegions]) -> dict[str, Any]:
    """The same of any texts, each with its own picture."""
    scores = matcher.scores(texts, pictures)
    found: dict[str, Any] = {"pictures": len(pictures)}
    found |= {f"picture_for_text_{name}": value for name, value in recall_at(scores).items()}
    return found | {f"text_for_picture_{name}": value for name, value in recall_at(scores.T).items()}


def score_asking(
    runner: VisualQuestionAnswering | Pointer, ask: Asking, count: int = 300, each: int = 6
) -> dict[str, Any]:
    """The share of right answers about so many held-out scenes, of all and by kind, and how many were asked."""
    asked, pictures = [], []
    for scene in scenes_of("validation", count):
        some = asked_of(scene, ask, each)
        asked += some
        pictures += [scene_regions(scene, runner.model.config.seeing)] * len(some)
    _check_head(runner, ask)
    logits = runner.said(runner.encode([one.text for one in asked]), pictures)
    right: dict[str, list[bool]] = defaultdict(list)
    for one, said in zip(asked, logits, strict=True):
        right[one.kind].append(int(said.argmax()) == one.target)
    return {"asked": len(asked), **accuracies(right)}


def _check_head(runner: Any, ask: Asking) -> None:
    if ask == "phrases":
        fits = isinstance(runner, Pointer) and not runner.model.config.seeing.cells
    else:
        labels = getattr(runner, "labels", ())
        fits = labels == ANSWERS if ask == "questions" else len(labels) == 2
    if not fits:
        raise InputError(f"this model, a {runner.kind}, was not trained on {ask} of scenes")


@dataclass(frozen=True)
class Looking:
    """How much of its attention a word of a thing gives to that thing, in one head of one meeting, on average."""

    co_attention: int
    head: int
    mass: float  # from 0 to 1
    chance: float  # what it would be, were all regions looked at alike
    whole: float  # how much it gives the whole picture, which shows the thing among all others


def score_looking(runner: VisionLanguagePipeline, count: int = 100) -> list[Looking]:
    """Where the words of canonical captions look, head by head: at the region they speak of, or by chance."""
    scenes = scenes_of("validation", count)
    found = [look for scene in scenes for look in _looks(runner, scene, caption(scene))]
    masses, wholes, chances = zip(*found, strict=True)
    mean, whole, chance = torch.stack(masses).mean(0), torch.stack(wholes).mean(0), float(np.mean(chances))
    return [
        Looking(co_attention, head, float(mean[co_attention, head]), chance, float(whole[co_attention, head]))
        for co_attention in range(mean.shape[0])
        for head in range(mean.shape[1])
    ]


@torch.inference_mode()
def _looks(runner: VisionLanguagePipeline, scene: Scene, said: Caption) -> list[tuple[Tensor, Tensor, float]]:
    """Of each piece that speaks of one thing: the attention (meetings, heads) it gives the thing, and the whole
    picture; and chance."""
    seeing = runner.model.config.seeing
    picture = scene_regions(scene, seeing)
    row = runner.tokenizer.encode_words(list(said.words), max_length=runner.model.config.context)
    shown = collate_regions([picture])
    with watch(runner.model, "*text_co_attention.attention.weights") as seen:
        runner.model.read(torch.tensor([row.ids]), torch.tensor([row.segment_ids]), shown.features, shown.boxes)
    weights = torch.stack([one[0] for (one,) in seen.values()])  # (meetings, H, T, R)
    shows = torch.from_numpy(_showing(scene, picture.boxes, bool(seeing.cells)))  # (things, R)
    found = []
    for place, word in enumerate(row.word_ids):
        thing = None if word is None else said.regions[word]
        if thing is not None and shows[thing].any():
            look = weights[:, :, place]
            found.append((look[:, :, shows[thing]].sum(-1), look[:, :, 0], float(shows[thing].float().mean())))
    return found


def _showing(scene: Scene, boxes: np.ndarray, cells: bool) -> np.ndarray:
    """Which regions (things, R) show a thing: its own, or the cells whose middle lies in its box."""
    if not cells:
        return np.eye(len(scene.things), len(boxes), k=1, dtype=bool)
    middles = (boxes[:, :2] + boxes[:, 2:4]) / 2 * scene.side
    found: Sequence[np.ndarray] = [
        np.all((middles >= thing.box[:2]) & (middles < thing.box[2:]), axis=1) for thing in scene.things
    ]
    shows = np.stack(found)
    shows[:, 0] = False  # the whole picture shows all of them
    return shows
