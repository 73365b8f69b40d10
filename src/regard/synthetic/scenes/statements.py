"""Statements about a scene, half of them true and half false by one word."""

from dataclasses import dataclass

from regard.errors import ConfigError
from regard.synthetic.scenes.facts import Fact, amount, plural, presence, standing, trait
from regard.synthetic.scenes.referring import noun
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.vocabulary import NUMBERS
from regard.synthetic.seeded import Draw

MAX_STATEMENTS = 20


@dataclass(frozen=True, slots=True)
class Statement:
    """Text, and whether it is true of the scene."""

    text: str
    true: bool


def statements(scene: Scene, count: int) -> list[Statement]:
    """`count` different statements. Of each two in a row one is true, in random order."""
    if not 0 <= count <= MAX_STATEMENTS:
        raise ConfigError(f"{count} statements about a scene: ask for 0 to {MAX_STATEMENTS}")
    draw = Draw(f"{scene.key} statements")
    found: dict[str, Statement] = {}
    true = False
    while len(found) < count:
        true = not true if len(found) % 2 else draw.one_in(2)
        text = ""
        while not text or text in found:
            text = draw.pick(_KINDS)(draw, scene, true)
        found[text] = Statement(text, true)
    return list(found.values())


def _having(draw: Draw, scene: Scene, true: bool) -> str:
    return _stated(trait(draw, scene, true=true))


def _standing(draw: Draw, scene: Scene, true: bool) -> str:
    return _stated(standing(draw, scene, true=true))


def _being(draw: Draw, scene: Scene, true: bool) -> str:
    return _stated(presence(draw, scene, true=true))


def _numbering(draw: Draw, scene: Scene, true: bool) -> str:
    number, thing, counted = amount(draw, scene, true=true)
    if number == 1:
        return f"there is one {noun(thing, (counted,))}"
    return f"there are {NUMBERS[number]} {plural(thing, counted)}"


def _stated(fact: Fact | None) -> str:
    return f"{fact.subject} is {fact.rest}" if fact else ""


_KINDS = (_having, _standing, _standing, _being, _numbering)  # repeated by frequency
