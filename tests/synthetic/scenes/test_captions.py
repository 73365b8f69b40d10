"""Captions say the truth: the canonical one all of it, the paraphrases in other words, the false ones never."""

from collections import Counter
from itertools import combinations

import pytest

from regard.errors import ConfigError
from regard.synthetic.scenes.captions import MAX_CAPTIONS, caption, captions, false_caption
from regard.synthetic.scenes.layout import reserved
from regard.synthetic.scenes.objects import COLORS, SHAPES, SIZES, TEXTURES, Thing
from regard.synthetic.scenes.scene import PARTS, Scene, Scenes
from regard.synthetic.scenes.vocabulary import VOCABULARY

NUMBERS = {"two": 2, "three": 3, "four": 4}


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return [Scenes(seed=5, part=part)[index] for part in PARTS for index in range(1000)]


def look(thing: Thing) -> tuple[str, str, str, str]:
    return thing.size, thing.texture, thing.color, thing.shape


def rows_of(scene: Scene) -> list[list[tuple[str, str, str, str]]]:
    """What stands in each row, found from the middles of the boxes alone."""
    rows: list[list[Thing]] = []
    for thing in sorted(scene.things, key=lambda thing: thing.box[1] + thing.box[3]):
        height = thing.box[1] + thing.box[3]
        if rows and height - (rows[-1][0].box[1] + rows[-1][0].box[3]) < 16:
            rows[-1].append(thing)
        else:
            rows.append([thing])
    return [[look(thing) for thing in sorted(row, key=lambda thing: thing.box[0])] for row in rows]


def read(words: tuple[str, ...]) -> list[list[tuple[str, str, str, str]]]:
    """A canonical caption back to the rows it tells of."""
    rows = []
    for row in " ".join(words).split(" above "):
        rows.append([])
        for named in row.split(" left of "):
            article, size, *texture, color, shape = named.split()
            assert article == "a"
            assert size in SIZES
            assert texture in ([], ["striped"], ["dotted"])
            assert color in COLORS
            assert shape in SHAPES
            rows[-1].append((size, *(texture or ["plain"]), color, shape))
    return rows


def test_the_caption_tells_exactly_what_the_scene_shows(scenes):
    """It can be read back, so two scenes with the same caption show the same."""
    for scene in scenes:
        assert read(caption(scene).words) == rows_of(scene)


def test_a_caption_in_full():
    wanted = "a large striped yellow heart left of a small striped yellow square above a large cyan star"
    assert caption(Scenes()[8]).words == tuple(wanted.split())


def test_regions_point_each_word_to_its_thing(scenes):
    for scene in scenes:
        found = caption(scene)
        assert len(found.words) == len(found.regions)
        for at, thing in enumerate(scene.things):
            said = [word for word, region in zip(found.words, found.regions, strict=True) if region == at]
            assert said == ["a", *(trait for trait in look(thing) if trait != "plain")]
        between = {word for word, region in zip(found.words, found.regions, strict=True) if region is None}
        assert between <= {"left", "of", "above"}


def holds(scene: Scene, one: int, where: str, other: int) -> bool:
    """Whether a relation holds between the middles of two things, by a margin."""
    a, b = scene.things[one].box, scene.things[other].box
    across, down = (b[0] + b[2] - a[0] - a[2]) / 2, (b[1] + b[3] - a[1] - a[3]) / 2
    level = abs(down) < 4
    return {
        "left of": level and across > 8,
        "right of": level and across < -8,
        "above": down > 8,
        "below": down < -8,
    }[where]


def check_paraphrase(scene: Scene, words: tuple[str, ...], regions: tuple[int | None, ...]) -> None:
    """Each trait is of the thing its word points to, each relation holds, and each shape is counted."""
    last, where, told = None, [], Counter()
    for before, word, region in zip(("", *words), words, regions, strict=False):
        if region is None:
            where += [word] if word in ("left", "right", "above", "below", "of") else []
            told.update([word.removesuffix("es" if word == "crosses" else "s")] * NUMBERS.get(before, 0))
            continue
        if word in (*COLORS, *SHAPES, *SIZES, *TEXTURES):
            assert word in look(scene.things[region])
            told.update([word] if word in SHAPES else [])
        if last not in (None, region) and where:
            assert holds(scene, last, " ".join(where), region)
            where = []
        last = region
    assert told == Counter(thing.shape for thing in scene.things)


def test_paraphrases_are_true_and_differ(scenes):
    for scene in scenes:
        found = captions(scene)
        assert len(found) == 5
        assert found[0] == caption(scene)
        assert len({each.words for each in found}) == 5
        for each in found:
            assert set(each.words) <= set(VOCABULARY)
            check_paraphrase(scene, each.words, each.regions)


def test_paraphrases_but_the_counting_one_say_everything(scenes):
    for scene in scenes:
        wanted = Counter(trait for thing in scene.things for trait in look(thing) if trait != "plain")
        partial = 0
        for each in captions(scene, MAX_CAPTIONS):
            said = Counter(word for word in each.words if word in (*COLORS, *SHAPES, *SIZES, *TEXTURES))
            partial += said != wanted
        assert partial <= 1


def test_fewer_captions_are_the_first_of_more(scenes):
    for scene in scenes[:50]:
        assert captions(scene, 3) == captions(scene, MAX_CAPTIONS)[:3]
    with pytest.raises(ConfigError, match="0 captions"):
        captions(scenes[0], 0)
    with pytest.raises(ConfigError, match="there are 1 to 9"):
        captions(scenes[0], 10)


def test_false_captions_are_false_by_one_change(scenes):
    changes = Counter()
    for scene in scenes:
        true = rows_of(scene)
        for index in range(3):
            false = read(false_caption(scene, index).words)
            assert false != true
            changes[change(true, false)] += 1
    assert set(changes) == {"size", "texture", "color", "shape", "places", "rows"}
    assert min(changes.values()) > 0.05 * changes.total()


def change(true, false) -> str:
    """What one change made the second of the first."""
    ones, others = ([thing for row in rows for thing in row] for rows in (true, false))
    if ones == others:
        assert abs(len(true) - len(false)) == 1
        return "rows"
    assert [len(row) for row in true] == [len(row) for row in false]
    differing = [(one, other) for one, other in zip(ones, others, strict=True) if one != other]
    if len(differing) == 2:
        assert differing[0] == differing[1][::-1]
        return "places"
    [(one, other)] = differing
    [trait] = [at for at in range(4) if one[at] != other[at]]
    return ("size", "texture", "color", "shape")[trait]


def test_false_captions_keep_to_their_part_of_the_world(scenes):
    for scene in scenes:
        for index in range(3):
            kinds = [thing[:1:-1][::-1] for row in read(false_caption(scene, index).words) for thing in row]
            assert any(reserved(*pair) for pair in combinations(kinds, 2)) == ("heldout" in scene.key)


def test_false_captions_tell_of_scenes_that_find_room(scenes):
    """Drawn as small as they come, with four pixels between things and one at each edge."""
    extent = {"small": 13, "large": 23}
    for scene in scenes:
        for index in range(3):
            rows = [[extent[thing[0]] for thing in row] for row in read(false_caption(scene, index).words)]
            for line in (*rows, [max(row) for row in rows]):
                assert sum(line) + 4 * (len(line) - 1) + 2 <= 64


def test_no_word_gives_a_false_caption_away(scenes):
    true = Counter(word for scene in scenes for word in caption(scene).words)
    false = Counter(word for scene in scenes for word in false_caption(scene, 0).words)
    for word, count in true.items():
        assert false[word] == pytest.approx(count, rel=0.12), word


def test_false_captions_are_drawn_by_index(scenes):
    scene = scenes[1]
    assert false_caption(scene, 4) == false_caption(scene, 4)
    assert len({false_caption(scene, index).words for index in range(30)}) > 8


def test_held_out_captions_are_none_of_training(scenes):
    trained = {caption(scene).words for scene in scenes if "training" in scene.key}
    assert not trained & {caption(scene).words for scene in scenes if "validation" in scene.key}
