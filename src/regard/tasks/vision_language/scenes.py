"""Synthetic scenes as this task's data: the questions that can be asked about one, and its regions."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Literal, NamedTuple

from regard.data.regions import ImageRegions, Regions, crop_regions, grid_regions
from regard.errors import ConfigError
from regard.models.vilbert import VisionConfig
from regard.synthetic.scenes.captions import Caption
from regard.synthetic.scenes.objects import COLORS, SHAPES, SIZES, TEXTURES
from regard.synthetic.scenes.question_types import phrase_kind, question_kind, statement_kind
from regard.synthetic.scenes.questions import questions
from regard.synthetic.scenes.referring import phrases
from regard.synthetic.scenes.scene import Scene, Scenes
from regard.synthetic.scenes.statements import statements
from regard.synthetic.scenes.vocabulary import ANSWERS

TRUTH_LABELS = ("false", "true")
QuestionForm = Literal["questions", "statements", "phrases"]

# The classes of objects: a masked region is predicted among them.
Attributes = tuple[str, str, str, str]
OBJECT_CLASSES: dict[Attributes, int] = {
    attributes: number for number, attributes in enumerate(product(COLORS, SHAPES, SIZES, TEXTURES))
}


class SceneQuestion(NamedTuple):
    """A question, statement or phrase about a scene, the class of its answer, and its kind."""

    text: str
    target: int
    kind: str


def questions_about(scene: Scene, form: QuestionForm, count: int) -> list[SceneQuestion]:
    """`count` questions or statements, or all phrases. The class of a phrase is its region: 0 is the whole image."""
    if form == "phrases":
        return [SceneQuestion(one.text, 1 + one.thing, phrase_kind(one.text)) for one in phrases(scene)]
    if form == "statements":
        return [SceneQuestion(one.text, int(one.true), statement_kind(one.text)) for one in statements(scene, count)]
    found = questions(scene, count)
    return [SceneQuestion(one.text, ANSWERS.index(one.answer), question_kind(one.text)) for one in found]


def first_scenes(part: Literal["training", "validation"], count: int) -> list[Scene]:
    """The first `count` scenes of a part."""
    scenes = Scenes(part=part)
    return [scenes[index] for index in range(count)]


def caption_text(caption: Caption) -> str:
    return " ".join(caption.words)


def named_regions(caption: Caption, tokens: Callable[[str], int]) -> list[int]:
    """For each token of a caption the region of the object it names, 0 for none; `tokens` of each word."""
    named = [0 if thing is None else 1 + thing for thing in caption.regions]
    return [region for word, region in zip(caption.words, named, strict=True) for _ in range(tokens(word))]


def scene_regions(scene: Scene, vision: VisionConfig) -> ImageRegions:
    """The whole image and the box of each object with its class; or the cells of a grid, if the model takes cells."""
    if vision.patch_size is None:
        raise ConfigError(
            f"model.vision.features={vision.features}: scenes have pixels, no features; give model.vision.patch_size=16"
        )
    if vision.grid:
        return grid_regions(scene.pixels(), vision.grid, vision.patch_size)
    classes = [OBJECT_CLASSES[thing.color, thing.shape, thing.size, thing.texture] for thing in scene.things]
    return crop_regions(scene.pixels(), [thing.box for thing in scene.things], vision.patch_size, classes)


def regions_of_scenes(scenes: Iterable[Scene], vision: VisionConfig) -> Regions:
    return Regions(scene_regions(scene, vision) for scene in scenes)
