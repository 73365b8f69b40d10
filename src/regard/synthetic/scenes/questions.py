"""Questions about a scene, each with its one answer: what color, how many, is there, is it left of."""

from dataclasses import dataclass

from regard.errors import ConfigError
from regard.synthetic.scenes.facts import VALUES, Fact, changed, matching, plural, presence, standing, trait
from regard.synthetic.scenes.referring import refer
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.vocabulary import NUMBERS
from regard.synthetic.seeded import Draw

MAX_QUESTIONS = 20
_TRAITS = tuple(VALUES)


@dataclass(frozen=True, slots=True)
class Question:
    """Text with spaces between all words and marks; its answer, one of ANSWERS; and the things that determine it.

    A question about absent things has no regions.
    """

    text: str
    answer: str
    regions: tuple[int, ...]


def questions(scene: Scene, count: int) -> list[Question]:
    """`count` different questions; a larger count extends the same list. `no` is as likely as `yes`."""
    if not 0 <= count <= MAX_QUESTIONS:
        raise ConfigError(f"{count} questions about a scene: ask 0 to {MAX_QUESTIONS}")
    draw = Draw(f"{scene.key} questions")
    found: dict[str, Question] = {}
    while len(found) < count:
        yes = draw.one_in(2)
        question = None
        while question is None or question.text in found:
            question = draw.pick(_KINDS)(draw, scene, yes)
        found[question.text] = question
    return list(found.values())


def _what(draw: Draw, scene: Scene, yes: bool) -> Question | None:
    asked = draw.pick(_TRAITS)
    at = draw.pick(range(len(scene.things)))
    pointed = refer(draw, scene, at, without=asked)
    if pointed is None:
        return None
    return Question(f"what {asked} is {pointed.text} ?", getattr(scene.things[at], asked), pointed.regions)


def _how_many(draw: Draw, scene: Scene, yes: bool) -> Question:
    """Count things that exist, and one time in three some that may not."""
    counted = draw.pick(_TRAITS)
    thing = draw.pick(scene.things)
    if draw.one_in(3):
        thing = changed(draw, thing, counted)
    found = matching(scene.things, thing, (counted,))
    return Question(f"how many {plural(thing, counted)} are there ?", NUMBERS[len(found)], found)


def _is_there(draw: Draw, scene: Scene, yes: bool) -> Question | None:
    return _is(presence(draw, scene, true=yes), yes)


def _is_it(draw: Draw, scene: Scene, yes: bool) -> Question | None:
    return _is(trait(draw, scene, true=yes), yes)


def _where(draw: Draw, scene: Scene, yes: bool) -> Question | None:
    return _is(standing(draw, scene, true=yes), yes)


def _is(fact: Fact | None, yes: bool) -> Question | None:
    if fact is None:
        return None
    return Question(f"is {fact.subject} {fact.rest} ?", "yes" if yes else "no", fact.regions)


_KINDS = (
    _what,
    _what,
    _what,
    _what,
    _how_many,
    _how_many,
    _is_there,
    _is_it,
    _where,
)  # repeated by frequency
