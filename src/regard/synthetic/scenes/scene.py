"""Drawn pictures of one to four shapes whose whole truth is known: as many as one likes, none stored.

A scene is a pure function of (seed, part, index). It holds things of a shape, a color, a size and a texture, in
rows that do not overlap, on a shaded and noisy background. What can be said of a scene stands in the files beside
this one: scene_captions.py, scene_questions.py, scene_statements.py and scene_phrases.py; all its words in
scene_words.py.

The held-out part tests composition, not memory. The kind of a thing is its color and shape, and one in ten of the
2,080 unordered pairs of kinds (a kind with itself among them) is reserved, by a hash that knows no seed. No two
things of a training scene are a reserved pair, whatever their sizes, textures and places; of a held-out scene at
least two are, so it has two things or more. Each of the 64 kinds occurs in training, alone and beside others.
"""

from dataclasses import dataclass

from regard.errors import ConfigError
from regard.synthetic.scenes.layout import Part, choose_things
from regard.synthetic.scenes.objects import Thing
from regard.synthetic.scenes.rendering import BACKGROUNDS, Pixels, paint
from regard.synthetic.seeded import Draw, seed_name

PARTS: tuple[Part, ...] = ("training", "validation")
SMALLEST_SIDE = 64
_BACKGROUNDS = tuple(BACKGROUNDS)


@dataclass(frozen=True, slots=True)
class Scene:
    """Things in reading order on a background. The key names the scene: all chance about it is drawn from it."""

    things: tuple[Thing, ...]
    background: str
    side: int
    key: str

    def pixels(self) -> Pixels:
        """The picture, (side, side, 3) with values 0 to 255."""
        return paint(self.things, self.background, self.side, self.key)


class Scenes:
    """The scenes of a part of a world: `Scenes(seed=0)[17]` is always the same. There is no last one."""

    def __init__(self, seed: int = 0, part: Part = "training", side: int = 64) -> None:
        if part not in PARTS:
            raise ConfigError(f"part {part!r} is unknown; choose one of {', '.join(PARTS)}")
        if side < SMALLEST_SIDE:
            raise ConfigError(f"side {side} is too small to see textures; choose {SMALLEST_SIDE} or more")
        self.seed, self.part, self.side = seed, part, side

    def __getitem__(self, index: int) -> Scene:
        if index < 0:
            raise IndexError(f"scene {index}: scenes are counted from 0 and have no end")
        key = f"scene {self.seed} {seed_name(self.part)} {index}"
        draw = Draw(key)
        things = choose_things(draw, self.part, self.side)
        return Scene(things, draw.pick(_BACKGROUNDS), self.side, key)
