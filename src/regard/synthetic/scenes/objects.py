"""The things in a scene: shapes with a color, a size, a texture and a box."""

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
    """One drawn shape. The box is (left, top, right, bottom) in pixels, right and bottom exclusive."""

    shape: str
    color: str
    size: str
    texture: str
    box: Box

    @property
    def kind(self) -> Kind:
        """Its color and shape; pairs of kinds are reserved for validation."""
        return self.color, self.shape


def relation(one: Thing, other: Thing) -> str:
    """The relation of one thing to the other: exactly one of RELATIONS holds.

    Things stand in rows that do not overlap: `above` and `below` hold between rows, `left of` and `right of`
    within one.
    """
    if one.box[3] <= other.box[1]:
        return "above"
    if other.box[3] <= one.box[1]:
        return "below"
    return "left of" if one.box[0] < other.box[0] else "right of"
