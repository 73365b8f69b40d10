"""Facts of a scene and their near misses, for questions and statements.

A near miss changes one word and is false. The change is random in a way that the words alone do not reveal it: a
relation becomes its opposite, a trait any other, and a number stays while what it counts is changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.synthetic.scenes.objects import COLORS, OPPOSITE, SHAPES, SIZES, TEXTURES, Thing, relation
from regard.synthetic.scenes.referring import TRAIT_SETS, Reference, direct, noun, refer, shared
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.vocabulary import PLURALS
from regard.synthetic.seeded import Draw

VALUES = {"size": SIZES, "texture": TEXTURES, "color": COLORS, "shape": SHAPES}
_ALL_TRAITS = tuple(VALUES)
_ENOUGH = tuple(named for named in TRAIT_SETS if len(named) > 1 and {"color", "shape"} & set(named))


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in two parts, joined by `is` in a statement, and the things it is about."""

    subject: str
    rest: str
    regions: tuple[int, ...]


def trait(draw: Draw, scene: Scene, *, true: bool) -> Fact | None:
    """`the large circle` is `red`"""
    asked = draw.pick(_ALL_TRAITS)
    at = draw.pick(range(len(scene.things)))
    pointed = refer(draw, scene, at, without=asked)
    if pointed is None:
        return None
    thing = scene.things[at] if true else changed(draw, scene.things[at], asked)
    value = getattr(thing, asked)
    return Fact(pointed.text, f"a {value}" if asked == "shape" else value, pointed.regions)


def standing(draw: Draw, scene: Scene, *, true: bool) -> Fact | None:
    """`the red circle` is `above the square`"""
    pair = _two_named(draw, scene)
    if pair is None:
        return None
    one, other = pair
    where = relation(scene.things[one.regions[0]], scene.things[other.regions[0]])
    return Fact(one.text, f"{where if true else OPPOSITE[where]} {other.text}", one.regions + other.regions)


def presence(draw: Draw, scene: Scene, *, true: bool) -> Fact:
    """`there` is `a striped red circle`"""
    named = draw.pick(_ENOUGH)
    thing = draw.pick(scene.things)
    while not true and matching(scene.things, thing, named):  # eventually a color or shape is absent
        thing = changed(draw, draw.pick(scene.things), draw.pick(named))
    return Fact("there", f"a {noun(thing, named)}", matching(scene.things, thing, named))


def amount(draw: Draw, scene: Scene, *, true: bool) -> tuple[int, Thing, str]:
    """How many things share a trait: the number, a thing that has it, and which trait it is."""
    counted = draw.pick(_ALL_TRAITS)
    thing = draw.pick(scene.things)
    number = len(matching(scene.things, thing, (counted,)))
    while not true and len(matching(scene.things, thing, (counted,))) == number:
        counted = draw.pick(_ALL_TRAITS)
        thing = changed(draw, draw.pick(scene.things), counted)
    return number, thing, counted


def plural(thing: Thing, counted: str) -> str:
    """`stars`, `red things`"""
    words = noun(thing, (counted,)).split()
    return " ".join([*words[:-1], PLURALS[words[-1]]])


def matching(things: Sequence[Thing], thing: Thing, named: Sequence[str]) -> tuple[int, ...]:
    """The indices of the things that share these traits with a thing."""
    return tuple(at for at, each in enumerate(things) if set(named) <= set(shared(each, thing)))


def changed(draw: Draw, thing: Thing, altered: str) -> Thing:
    """The thing with another value of one trait, uniformly."""
    old = getattr(thing, altered)
    value = draw.pick([value for value in VALUES[altered] if value != old])
    changes: dict[str, str] = {altered: value}
    return replace(thing, **changes)  # type: ignore[arg-type]


def _two_named(draw: Draw, scene: Scene) -> tuple[Reference, Reference] | None:
    """Two things by their own traits, in either order."""
    named = [found for at in range(len(scene.things)) if (found := direct(scene, at))]
    if len(named) < 2:
        return None
    one = draw.pick(named)
    other = draw.pick([each for each in named if each is not one])
    return draw.pick(one), draw.pick(other)
