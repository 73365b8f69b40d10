"""Referring expressions: `the small red star`, `the ring left of the large square`, each for one thing of a scene."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from regard.synthetic.scenes.objects import Thing, relation
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.seeded import Draw

TRAITS = ("size", "texture", "color", "shape")  # in the order of words
Traits = tuple[str, ...]
TRAIT_SETS: tuple[Traits, ...] = tuple(named for many in range(len(TRAITS) + 1) for named in combinations(TRAITS, many))


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that match exactly one thing of the scene, and its index."""

    text: str
    thing: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A referring expression, and the indices of all things it names; the first is its referent."""

    text: str
    regions: tuple[int, ...]


def phrases(scene: Scene) -> list[Phrase]:
    """For each thing all shortest phrases of its own traits, and one by its relation to another thing.

    A thing that looks like another has only the latter, or none if no other thing distinguishes them.
    """
    draw = Draw(f"{scene.key} phrases")
    found = []
    for at in range(len(scene.things)):
        pointed = [*direct(scene, at), *_one_of(draw, relational(scene, at))]
        found += [Phrase(reference.text, at) for reference in pointed]
    return found


def refer(draw: Draw, scene: Scene, at: int, without: str = "") -> Reference | None:
    """A phrase for a thing without one trait, for a question about that trait; None if there is none."""
    found = direct(scene, at, without)
    if not found or draw.one_in(2):
        found = relational(scene, at, without) or found
    return draw.pick(found) if found else None


def direct(scene: Scene, at: int, without: str = "") -> list[Reference]:
    """The minimal phrases of a thing's own traits: each word is needed to identify it."""
    thing = scene.things[at]
    others = [other for other in scene.things if other is not thing]
    return [Reference(f"the {noun(thing, named)}", (at,)) for named in _telling(thing, others, without)]


def relational(scene: Scene, at: int, without: str = "") -> list[Reference]:
    """The same with a relation to another thing, which is named by its own traits."""
    thing, found = scene.things[at], []
    for place, anchor in enumerate(scene.things):
        named = direct(scene, place) if place != at else []
        if named:
            where = relation(thing, anchor)
            rivals = [
                each
                for each in scene.things
                if each is not thing and each is not anchor and relation(each, anchor) == where
            ]
            heads = [noun(thing, traits) for traits in _telling(thing, rivals, without)]
            found += [Reference(f"the {head} {where} {one.text}", (at, place)) for head in heads for one in named]
    return found


def noun(thing: Thing, named: Iterable[str]) -> str:
    """A thing by some of its traits: `small red star`, or `small red thing` without its shape."""
    said = set(named)
    return " ".join([getattr(thing, trait) for trait in TRAITS if trait in said] + ["thing"] * ("shape" not in said))


def shared(one: Thing, other: Thing) -> Traits:
    """The traits that two things share."""
    return tuple(trait for trait in TRAITS if getattr(one, trait) == getattr(other, trait))


def _telling(thing: Thing, others: Sequence[Thing], without: str) -> tuple[Traits, ...]:
    """The smallest sets of traits that distinguish a thing from the others. The shape is included if allowed."""
    return _smallest(frozenset(shared(thing, other) for other in others), without)


@lru_cache(maxsize=8192)
def _smallest(shared: frozenset[Traits], without: str) -> tuple[Traits, ...]:
    """The smallest sets of traits that no other thing shares, from the sets that others do share."""
    found: list[Traits] = []
    for named in TRAIT_SETS:
        sayable = without not in named and ("shape" in named or without == "shape")
        smaller = any(set(each) <= set(named) for each in found)
        if sayable and not smaller and not any(set(named) <= set(each) for each in shared):
            found.append(named)
    return tuple(found)


def _one_of(draw: Draw, options: Sequence[Reference]) -> Sequence[Reference]:
    return [draw.pick(options)] if options else []
