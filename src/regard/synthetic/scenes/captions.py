"""Captions of a scene: one canonical caption, true paraphrases of it, and near misses.

The canonical caption names all things in reading order with all their traits, and the relation of each to
the next: `a large red circle left of a small striped blue square above a pink ring`. A texture not named is plain.
A scene has exactly one, and two scenes with the same one show the same things in the same rows, so a written
caption that equals it is true and complete.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from regard.errors import ConfigError
from regard.synthetic.scenes.layout import EXTENTS, fits, holds_reserved, scaled
from regard.synthetic.scenes.objects import COLORS, OPPOSITE, SHAPES, SIZES, TEXTURES, Thing, relation
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.vocabulary import NUMBERS, PLURALS
from regard.synthetic.seeded import Draw

Writer = Callable[[Thing], str]
Content = tuple[list[Thing], list[str]]  # things, and the relation of each to the next
MAX_CAPTIONS = 9


@dataclass(frozen=True, slots=True)
class Caption:
    """Words, and for each the index of the thing it refers to; None for words about none or several."""

    words: tuple[str, ...]
    regions: tuple[int | None, ...]


def caption(scene: Scene) -> Caption:
    """The one canonical caption."""
    return _written(*_content(scene))


def captions(scene: Scene, count: int = 5) -> list[Caption]:
    """`count` different true captions: the canonical one, then paraphrases in an order that the scene determines.

    One of them, `two stars and a ring`, only counts the shapes; the others say all that the canonical one says.
    """
    if not 1 <= count <= MAX_CAPTIONS:
        raise ConfigError(f"{count} captions of a scene: there are 1 to {MAX_CAPTIONS}")
    draw = Draw(f"{scene.key} captions")
    found = [caption(scene)]
    while len(found) < count:
        other = draw.pick(_PARAPHRASES)(draw, scene)
        if other not in found:
            found.append(other)
    return found


def false_caption(scene: Scene, index: int) -> Caption:
    """A canonical caption that is false here by one change: a near miss, another for each index.

    A word of one thing is changed, two things are swapped, or `left of` becomes `above` or the reverse. Such a scene
    could be drawn in the same split: pairs reserved for validation are not mentioned in training, or a model would
    learn that they are always false. Regions point to the things of this scene.
    """
    draw = Draw(f"{scene.key} false {index}")
    true, known = caption(scene), holds_reserved(thing.kind for thing in scene.things)
    while True:
        things, relations = draw.pick(_CHANGES)(draw, *_content(scene))
        changed = _written(things, relations)
        if (
            changed.words != true.words
            and holds_reserved(thing.kind for thing in things) == known
            and _could_stand(things, relations, scene.side)
        ):
            return changed


def _content(scene: Scene) -> Content:
    things = list(scene.things)
    return things, [relation(one, other) for one, other in pairwise(things)]


def _written(things: Sequence[Thing], relations: Sequence[str], *, lead: str = "", backward: bool = False) -> Caption:
    return _chained(_before, things, relations, lead, backward)


def _chained(write: Writer, things: Sequence[Thing], relations: Sequence[str], lead: str, backward: bool) -> Caption:
    """The things in order with their relations between them; `backward` from the last to the first."""
    order, between = list(range(len(things))), list(relations)
    if backward:
        order, between = order[::-1], [OPPOSITE[each] for each in relations[::-1]]
    parts: list[tuple[str, int | None]] = [(lead, None)]
    for at, joined in zip(order, ["", *between], strict=True):
        parts += [(joined, None), (write(things[at]), at)]
    return _joined(parts)


def _joined(parts: Sequence[tuple[str, int | None]]) -> Caption:
    words = [(word, region) for text, region in parts for word in text.split()]
    return Caption(tuple(word for word, _ in words), tuple(region for _, region in words))


def _before(thing: Thing) -> str:
    """`a large striped red circle`"""
    texture = "" if thing.texture == "plain" else thing.texture
    return f"a {thing.size} {texture} {thing.color} {thing.shape}"


def _after(thing: Thing) -> str:
    """`a circle that is large and red and striped`"""
    texture = "" if thing.texture == "plain" else f"and {thing.texture}"
    return f"a {thing.shape} that is {thing.size} and {thing.color} {texture}"


def _retold(draw: Draw, scene: Scene) -> Caption:
    write = draw.pick((_before, _after))
    return _chained(write, *_content(scene), draw.pick(("", "there is", "the picture shows", "i see")), draw.one_in(2))


def _counted(draw: Draw, scene: Scene) -> Caption:
    """`two stars and a ring`: how many of each shape, in the order they come."""
    parts: list[tuple[str, int | None]] = []
    shapes = [thing.shape for thing in scene.things]
    for shape in dict.fromkeys(shapes):
        many = shapes.count(shape)
        said = (f"a {shape}", shapes.index(shape)) if many == 1 else (f"{NUMBERS[many]} {PLURALS[shape]}", None)
        parts += [("and" if parts else "", None), said]
    return _joined(parts)


_PARAPHRASES: tuple[Callable[[Draw, Scene], Caption], ...] = (_retold, _retold, _retold, _retold, _counted)


def _other_color(draw: Draw, things: list[Thing], relations: list[str]) -> Content:
    at = draw.pick(range(len(things)))
    things[at] = replace(things[at], color=draw.pick(COLORS))
    return things, relations


def _other_shape(draw: Draw, things: list[Thing], relations: list[str]) -> Content:
    at = draw.pick(range(len(things)))
    things[at] = replace(things[at], shape=draw.pick(SHAPES))
    return things, relations


def _other_size(draw: Draw, things: list[Thing], relations: list[str]) -> Content:
    at = draw.pick(range(len(things)))
    things[at] = replace(things[at], size=draw.pick(SIZES))
    return things, relations


def _other_texture(draw: Draw, things: list[Thing], relations: list[str]) -> Content:
    at = draw.pick(range(len(things)))
    things[at] = replace(things[at], texture=draw.pick(TEXTURES))
    return things, relations


def _other_places(draw: Draw, things: list[Thing], relations: list[str]) -> Content:
    one, other = draw.pick(range(len(things))), draw.pick(range(len(things)))
    things[one], things[other] = things[other], things[one]
    return things, relations


def _other_relation(draw: Draw, things: list[Thing], relations: list[str]) -> Content:
    if relations:
        relations[draw.pick(range(len(relations)))] = draw.pick(("left of", "above"))
    return things, relations


_CHANGES = (_other_color, _other_shape, _other_size, _other_texture, _other_places, _other_relation)


def _could_stand(things: Sequence[Thing], relations: Sequence[str], side: int) -> bool:
    """Whether such things fit into such rows at their smallest sizes."""
    rows: list[list[int]] = []
    for thing, before in zip(things, ["above", *relations], strict=True):
        if before == "above":
            rows.append([])
        rows[-1].append(scaled(EXTENTS[thing.size][0], side))
    return fits(rows, side)
