"""What stands in a drawn scene: shapes of a color, a size and a texture, each in its place."""

from dataclasses import dataclass

SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "diamond", "heart")
COLORS = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
SIZES = ("small", "large")
TEXTURES = ("plain", "striped", "dotted")
RELATIONS = ("left of", "right of", "above", "below")
OPPOSITE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}

Box = tuple[int, int, int, int]
Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Thing:
    """One drawn shape. The box is (left, top, right, bottom) of its pixels; right and bottom are the first beyond."""

    shape: str
    color: str
    size: str
    texture: str
    box: Box

    @property
    def kind(self) -> Kind:
        """Its color and shape, of which the held-out pairs are made."""
        return self.color, self.shape


def relation(one: Thing, other: Thing) -> str:
    """Where one thing stands from the other. Of two things of a scene exactly one of RELATIONS is true.

    Things stand in rows that do not overlap: `above` and `below` hold between rows, `left of` and `right of`
    within one.
    """
    if one.box[3] <= other.box[1]:
        return "above"
    if other.box[3] <= one.box[1]:
        return "below"
    return "left of" if one.box[0] < other.box[0] else "right of"
