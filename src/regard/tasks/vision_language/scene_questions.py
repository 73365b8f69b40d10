"""What can be asked of a scene of the built-in world, and the class that is right."""

from typing import Literal, NamedTuple

from regard.synthetic.scenes.captions import Caption
from regard.synthetic.scenes.question_types import phrase_kind, question_kind, statement_kind
from regard.synthetic.scenes.questions import questions
from regard.synthetic.scenes.referring import phrases
from regard.synthetic.scenes.scene import Scene, Scenes
from regard.synthetic.scenes.statements import statements
from regard.synthetic.scenes.vocabulary import ANSWERS

TRUTHS = ("false", "true")
Asking = Literal["questions", "statements", "phrases"]


class Ask(NamedTuple):
    """A text asked of a scene, the class that is right, and what kind of question it is."""

    text: str
    target: int
    kind: str


def asked_of(scene: Scene, ask: Asking, each: int) -> list[Ask]:
    """So many questions or statements; of phrases all. The class of a phrase is its region: 0 is the whole picture."""
    if ask == "phrases":
        return [Ask(one.text, 1 + one.thing, phrase_kind(one.text)) for one in phrases(scene)]
    if ask == "statements":
        return [Ask(one.text, int(one.true), statement_kind(one.text)) for one in statements(scene, each)]
    return [Ask(one.text, ANSWERS.index(one.answer), question_kind(one.text)) for one in questions(scene, each)]


def scenes_of(part: Literal["training", "validation"], count: int) -> list[Scene]:
    """The first so many of a part."""
    world = Scenes(part=part)
    return [world[index] for index in range(count)]


def spoken(caption: Caption) -> str:
    return " ".join(caption.words)
