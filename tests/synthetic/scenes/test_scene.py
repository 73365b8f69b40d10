"""Scenes are what they say: drawn where their boxes are, in rows with room between, and split by pairs of kinds."""

from collections import Counter
from hashlib import sha256
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ConfigError
from regard.synthetic.scenes.layout import EXTENTS, RESERVED_IN, reserved
from regard.synthetic.scenes.objects import COLORS, OPPOSITE, SHAPES, SIZES, TEXTURES, Thing, relation
from regard.synthetic.scenes.rendering import BACKGROUNDS, DARK, NOISE, PAINTS, SLOPE, grain, paint
from regard.synthetic.scenes.scene import Scene, Scenes
from regard.synthetic.scenes.shapes import darkened, mask

KINDS = list(product(COLORS, SHAPES))


@pytest.fixture(scope="module")
def training() -> list[Scene]:
    world = Scenes(seed=1)
    return [world[index] for index in range(4000)]


@pytest.fixture(scope="module")
def validation() -> list[Scene]:
    world = Scenes(seed=1, part="validation")
    return [world[index] for index in range(2000)]


def test_a_scene_is_a_pure_function_of_seed_part_and_index():
    backward = [Scenes(seed=3)[index] for index in reversed(range(30))]
    world = Scenes(seed=3)
    for index, scene in enumerate(reversed(backward)):
        assert scene == world[index]
        assert np.array_equal(scene.pixels(), world[index].pixels())
    others = (Scenes(seed=4), Scenes(seed=3, part="validation"))
    for other in others:
        assert [other[index].things for index in range(30)] != [scene.things for scene in reversed(backward)]


def test_the_pictures_are_the_same_on_every_machine():
    drawn = b"".join(Scenes()[index].pixels().tobytes() for index in range(20))
    assert sha256(drawn).hexdigest()[:16] == "11d7a3f5a639bee3"


def test_no_two_pictures_share_their_noise():
    world = Scenes()
    assert len({paint((), "paper", 64, world[index].key).tobytes() for index in range(100)}) == 100


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(["training", "validation"]), st.integers(64, 200))
def test_each_box_is_the_extent_of_the_drawn_pixels(seed, index, part, side):
    scene = Scenes(seed, part, side)[index]
    plain = paint((), scene.background, side, scene.key)
    assert scene.pixels().shape == (side, side, 3)
    assert scene.pixels().dtype == np.uint8
    whole = np.zeros((side, side), bool)
    for thing in scene.things:
        drawn = (paint((thing,), scene.background, side, scene.key) != plain).any(axis=2)
        rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
        assert thing.box == (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
        assert not (whole & drawn).any()
        whole |= drawn
    assert np.array_equal((scene.pixels() != plain).any(axis=2), whole)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.integers(64, 200))
def test_things_leave_room_between_them_and_no_relation_is_in_doubt(index, side):
    """In pixels of a picture of 64: another row is 13 away or more, the same row 2 at most."""
    scene = Scenes(side=side)[index]
    unit = side / 64
    for thing in scene.things:
        assert min(thing.box) > 0
        assert max(thing.box) < side
    for one, other in combinations(scene.things, 2):
        across, down = (abs(a - b) / unit for a, b in zip(middle(one), middle(other), strict=True))
        where = relation(one, other)
        assert relation(other, one) == OPPOSITE[where]
        assert where in ("left of", "above"), "things come in reading order"
        gap = max(0, other.box[1] - one.box[3]) if where == "above" else other.box[0] - one.box[2]
        assert gap >= int(4 * unit)
        assert down >= 13 if where == "above" else down <= 2 and across >= 13


def middle(thing: Thing) -> tuple[float, float]:
    left, top, right, bottom = thing.box
    return (left + right) / 2, (top + bottom) / 2


def test_things_have_the_extent_of_their_size(training):
    for thing in (thing for scene in training for thing in scene.things):
        left, top, right, bottom = thing.box
        assert right - left == bottom - top
        assert right - left in EXTENTS[thing.size]
    assert min(EXTENTS["large"]) >= 1.5 * max(EXTENTS["small"])


def test_the_color_of_a_thing_is_read_from_its_pixels(training):
    for scene in training[:300]:
        picture = scene.pixels()
        for thing in scene.things:
            left, top, right, bottom = thing.box
            inside = picture[top:bottom, left:right][mask(thing.shape, right - left)]
            full = (inside == PAINTS[thing.color]).all(axis=1).mean()
            assert (full == 1) == (thing.texture == "plain")
            assert full >= 0.45


def test_all_there_is_occurs_about_as_often(training):
    things = [thing for scene in training for thing in scene.things]
    for trait, values in {"shape": SHAPES, "color": COLORS, "size": SIZES, "texture": TEXTURES}.items():
        counts = Counter(getattr(thing, trait) for thing in things)
        assert set(counts) == set(values)
        assert max(counts.values()) < 1.35 * min(counts.values())
    assert set(Counter(len(scene.things) for scene in training)) == {1, 2, 3, 4}
    assert {scene.background for scene in training} == set(BACKGROUNDS)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("extent", [extent for extents in EXTENTS.values() for extent in extents])
def test_shapes_touch_their_sides_and_show_their_textures(shape, extent):
    filled = mask(shape, extent)
    for edge in (filled[0], filled[-1], filled[:, 0], filled[:, -1]):
        assert edge.any()
    striped, dotted, plain = (darkened(shape, extent, each, grain(64)) for each in ("striped", "dotted", "plain"))
    assert not plain.any()
    assert 0.4 < striped.sum() / filled.sum() < 0.55
    assert 0.17 < dotted.sum() / filled.sum() < 0.34
    assert not ((striped | dotted) & ~filled).any()
    assert not np.array_equal(striped, dotted)


@pytest.mark.parametrize("extent", [13, 15, 23, 25])
def test_no_shape_looks_like_another(extent):
    for one, other in combinations(SHAPES, 2):
        apart = (mask(one, extent) ^ mask(other, extent)).mean()
        assert apart > 0.1, f"{one} and {other}"


def test_colors_stand_out_from_each_other_and_from_every_background():
    darker = {name: np.array(color) * DARK for name, color in PAINTS.items()}
    for one, other in combinations(PAINTS.values(), 2):
        assert apart(one, other) > 90
    for background, shift in product(BACKGROUNDS.values(), range(-SLOPE - NOISE, SLOPE + NOISE + 1)):
        seen = np.array(background) + shift
        assert min(apart(color, seen) for color in PAINTS.values()) > 90
        assert min(apart(color, seen) for color in darker.values()) > 60


def apart(one, other) -> float:
    return float(np.linalg.norm(np.subtract(one, other)))


def test_backgrounds_keep_within_their_slope_and_noise():
    for name, base in BACKGROUNDS.items():
        away = paint((), name, 64, "any").astype(int) - base
        assert away.min() >= -SLOPE - NOISE - 1
        assert away.max() <= SLOPE + NOISE
        assert away.std() > 4


def pairs(scene: Scene) -> list[bool]:
    return [reserved(one.kind, other.kind) for one, other in combinations(scene.things, 2)]


def test_reserved_pairs_stand_in_held_out_scenes_only(training, validation):
    assert not any(any(pairs(scene)) for scene in training)
    assert all(any(pairs(scene)) for scene in validation)


def test_one_pair_in_ten_is_reserved_in_either_order():
    every = [(one, other) for at, one in enumerate(KINDS) for other in KINDS[at:]]
    assert len(every) == 2080
    held = [pair for pair in every if reserved(*pair)]
    assert len(held) / len(every) == pytest.approx(1 / RESERVED_IN, abs=0.02)
    assert all(reserved(other, one) for one, other in held)


def test_every_kind_is_seen_in_training_alone_and_beside_others(training):
    alone = {
        scene.things[0].kind for scene in (Scenes(seed=2)[index] for index in range(6000)) if len(scene.things) == 1
    }
    beside = {thing.kind for scene in training if len(scene.things) > 1 for thing in scene.things}
    assert alone == beside == set(KINDS)


def test_wrong_parts_sides_and_indices_are_named():
    with pytest.raises(ConfigError, match="part 'test' is unknown; choose one of training, validation"):
        Scenes(part="test")
    with pytest.raises(ConfigError, match="side 32 is too small"):
        Scenes(side=32)
    with pytest.raises(IndexError, match="scene -1"):
        Scenes()[-1]
