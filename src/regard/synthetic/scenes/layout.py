"""Choose the things of a scene and their boxes: in rows with gaps, so that every relation is unambiguous."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations, pairwise
from typing import Literal

from regard.synthetic.scenes.objects import COLORS, SHAPES, SIZES, TEXTURES, Box, Kind, Thing
from regard.synthetic.seeded import Draw

Part = Literal["training", "validation"]
Look = tuple[str, str, str, str]  # shape, color, size, texture
Row = tuple[int, ...]  # of extents

RESERVED_IN = 10  # one in so many pairs of kinds is reserved for validation
EXTENTS = {"small": (13, 15), "large": (23, 25)}  # in an image of 64 pixels
EDGE, GAP = 1, 4  # pixels at the edge and between things
_COUNTS = (1, 2, 2, 3, 3, 3, 4, 4)  # repeated by frequency


@lru_cache(maxsize=8192)
def reserved(one: Kind, other: Kind) -> bool:
    """Whether two kinds never occur in one training scene, for any seed."""
    key = " and ".join(sorted((" ".join(one), " ".join(other))))
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") % RESERVED_IN == 0


def holds_reserved(kinds: Iterable[Kind]) -> bool:
    """Whether any two of these kinds are reserved."""
    return any(reserved(one, other) for one, other in combinations(kinds, 2))


def choose_things(draw: Draw, part: Part, side: int) -> tuple[Thing, ...]:
    """The things of a scene in reading order: row by row from the top, each row from the left."""
    validation = part == "validation"
    count = draw.pick(_COUNTS[1:] if validation else _COUNTS)
    looks = _looks(draw, count)
    while holds_reserved((look[1], look[0]) for look in looks) != validation:
        looks = _looks(draw, count)
    boxes = _boxes(draw, tuple(scaled(draw.pick(EXTENTS[look[2]]), side) for look in looks), side)
    return tuple(Thing(*look, box) for look, box in zip(looks, boxes, strict=True))


def scaled(extent: int, side: int) -> int:
    """The extent in an image of another side; odd, as `shapes.mask` needs it."""
    return extent * side // 64 | 1


def fits(rows: Sequence[Sequence[int]], side: int) -> bool:
    """Whether things of these extents fit into these rows."""
    widest = max(_needed(row, side) for row in rows)
    return max(widest, _needed([max(row) for row in rows], side)) <= side


def _looks(draw: Draw, count: int) -> list[Look]:
    """Random looks; now and then a shape or a color is repeated, so that there is something to count."""
    looks: list[Look] = []
    for _ in range(count):
        shape, color = draw.pick(SHAPES), draw.pick(COLORS)
        if looks and draw.one_in(5):
            shape = draw.pick(looks)[0]
        if looks and draw.one_in(5):
            color = draw.pick(looks)[1]
        looks.append((shape, color, draw.pick(SIZES), draw.pick(TEXTURES)))
    return looks


def _boxes(draw: Draw, extents: Row, side: int) -> list[Box]:
    rows = draw.pick(_arrangements(extents, side))
    tops = _starts(draw, [max(row) for row in rows], side)
    boxes = []
    for row, top in zip(rows, tops, strict=True):
        for extent, left in zip(row, _starts(draw, row, side), strict=True):
            slack = max(row) - extent
            start = top + slack // 2 + (draw.pick((-1, 0, 1)) if slack > 2 else 0)
            boxes.append((left, start, left + extent, start + extent))
    return boxes


@lru_cache(maxsize=4096)
def _arrangements(extents: Row, side: int) -> list[list[Row]]:
    """All ways to break things into rows that fit, in order."""
    last = len(extents)
    found = []
    for breaks in range(last):
        for cuts in combinations(range(1, last), breaks):
            ends = (0, *cuts, last)
            found.append([extents[start:end] for start, end in pairwise(ends)])
    return [rows for rows in found if fits(rows, side)]


def _starts(draw: Draw, extents: Sequence[int], side: int) -> list[int]:
    """Where things along a line start: the spare room is distributed randomly between them."""
    spare = range(side - _needed(extents, side) + 1)
    shifts = sorted(draw.pick(spare) for _ in extents)
    gap = GAP * side // 64
    at, starts = EDGE, []
    for extent, shift in zip(extents, shifts, strict=True):
        starts.append(at + shift)
        at += extent + gap
    return starts


def _needed(extents: Sequence[int], side: int) -> int:
    return sum(extents) + GAP * side // 64 * (len(extents) - 1) + 2 * EDGE
