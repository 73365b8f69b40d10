"""Questions, statements and phrases, checked by a reader of this file's own that knows boxes and looks alone."""

from collections import Counter, defaultdict

import pytest

from regard.errors import ConfigError
from regard.synthetic.scenes.captions import captions
from regard.synthetic.scenes.objects import Thing
from regard.synthetic.scenes.questions import MAX_QUESTIONS, questions
from regard.synthetic.scenes.referring import phrases
from regard.synthetic.scenes.scene import PARTS, Scene, Scenes
from regard.synthetic.scenes.statements import MAX_STATEMENTS, statements
from regard.synthetic.scenes.vocabulary import ANSWERS, VOCABULARY

NUMBERS = ["zero", "one", "two", "three", "four"]
PLURAL = {"crosses": "cross"}
VALUES = {
    "size": {"small", "large"},
    "texture": {"plain", "striped", "dotted"},
    "color": {"red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink"},
    "shape": {"circle", "square", "triangle", "star", "cross", "ring", "diamond", "heart"},
}


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return [Scenes(seed=6, part=part)[index] for part in PARTS for index in range(1000)]


def has(thing: Thing, word: str) -> bool:
    return word in (thing.size, thing.texture, thing.color, thing.shape)


def fitting(scene: Scene, words: list[str]) -> set[int]:
    """The things that `small red star` or `red things` fits."""
    *adjectives, noun = words
    noun = PLURAL.get(noun, noun.removesuffix("s") if noun not in VALUES["shape"] else noun)
    wanted = adjectives if noun == "thing" else [*adjectives, noun]
    return {at for at, thing in enumerate(scene.things) if all(has(thing, word) for word in wanted)}


def stands(scene: Scene, one: int, where: str, other: int) -> bool:
    a, b = scene.things[one].box, scene.things[other].box
    across, down = (b[0] + b[2] - a[0] - a[2]) / 2, (b[1] + b[3] - a[1] - a[3]) / 2
    if abs(down) > 8:
        return where == ("above" if down > 0 else "below")
    return where == ("left of" if across > 0 else "right of")


def halves(words: list[str]) -> tuple[list[str], str, list[str]]:
    """The words before a relation, the relation, and those behind; both of the latter empty where there is none."""
    for at, word in enumerate(words):
        if word in ("left", "right"):
            return words[:at], f"{word} of", words[at + 2 :]
        if word in ("above", "below"):
            return words[:at], word, words[at + 1 :]
    return words, "", []


def pointed(scene: Scene, words: list[str]) -> int:
    """The one thing that `the star left of the ring` points to."""
    head, where, anchor = halves(words)
    assert head[0] == "the"
    found = fitting(scene, head[1:])
    if where:
        base = pointed(scene, anchor)
        found = {at for at in found if at != base and stands(scene, at, where, base)}
    assert len(found) == 1, f"{' '.join(words)} fits {len(found)} things"
    return found.pop()


def is_so(scene: Scene, words: list[str]) -> bool:
    """Whether `the star left of the ring | red`, `the star | left of the ring` or `there | a star` holds."""
    if words[0] == "there":
        return bool(fitting(scene, words[2:]))
    if words[-2] == "a":
        return has(scene.things[pointed(scene, words[:-2])], words[-1])
    if any(words[-1] in VALUES[trait] for trait in ("size", "texture", "color")):
        return has(scene.things[pointed(scene, words[:-1])], words[-1])
    head, where, anchor = halves(words)
    return stands(scene, pointed(scene, head), where, pointed(scene, anchor))


def answer(scene: Scene, text: str) -> str:
    words = text.split()
    assert words.pop() == "?"
    if words[0] == "how":
        assert words[-2:] == ["are", "there"]
        return NUMBERS[len(fitting(scene, words[2:-2]))]
    if words[0] == "what":
        thing = scene.things[pointed(scene, words[3:])]
        assert not VALUES[words[1]] & set(halves(words[3:])[0]), "the answer is not in the question"
        return str(getattr(thing, words[1]))
    return "yes" if is_so(scene, words[1:]) else "no"


def true(scene: Scene, text: str) -> bool:
    words = text.split()
    if words[2] in NUMBERS:
        return len(fitting(scene, words[3:])) == NUMBERS.index(words[2])
    at = words.index("is")
    return is_so(scene, words[:at] + words[at + 1 :])


def test_the_reader_tells_true_from_false():
    scene = Scenes()[8]
    assert answer(scene, "what shape is the thing below the heart ?") == "star"
    assert answer(scene, "is the heart right of the square ?") == "no"
    assert true(scene, "the heart left of the square is yellow")
    assert not true(scene, "there are two stars")


def test_every_answer_is_the_one_the_picture_gives(scenes):
    for scene in scenes:
        for question in questions(scene, 6):
            assert question.answer == answer(scene, question.text), question.text
            assert question.answer in ANSWERS


def test_questions_point_to_what_they_speak_of(scenes):
    for scene in scenes[:500]:
        for question in questions(scene, 6):
            words = question.text.split()[:-1]
            if words[0] == "how":
                assert set(question.regions) == fitting(scene, words[2:-2])
            elif words[:2] == ["is", "there"]:
                assert set(question.regions) == fitting(scene, words[3:])
            elif words[0] == "what":
                _, where, anchor = halves(words[3:])
                named = [pointed(scene, words[3:])] + ([pointed(scene, anchor)] if where else [])
                assert list(question.regions) == named


def test_every_answer_occurs_and_yes_is_as_likely_as_no(scenes):
    counts = Counter(question.answer for scene in scenes for question in questions(scene, 6))
    assert set(counts) == set(ANSWERS)
    assert len(set(ANSWERS)) == len(ANSWERS)
    assert counts["yes"] / (counts["yes"] + counts["no"]) == pytest.approx(0.5, abs=0.02)


def test_every_kind_of_question_is_asked(scenes):
    starts = Counter(" ".join(q.text.split()[:2]) for scene in scenes for q in questions(scene, 6))
    assert set(starts) == {"what color", "what shape", "what size", "what texture", "how many", "is there", "is the"}
    assert min(starts.values()) > 0.05 * starts.total()


def test_statements_are_true_or_false_as_they_say(scenes):
    for scene in scenes:
        for statement in statements(scene, 6):
            assert statement.true == true(scene, statement.text), statement.text


def test_half_of_the_statements_are_true(scenes):
    for scene in scenes:
        assert sum(statement.true for statement in statements(scene, 6)) == 3
    first = [statements(scene, 1)[0].true for scene in scenes]
    assert sum(first) / len(first) == pytest.approx(0.5, abs=0.04)


def test_no_word_gives_a_false_statement_away(scenes):
    """Who does not look at the picture does not know: what is true of half the texts is so for each word of them."""
    seen: dict[str, list[bool]] = defaultdict(list)
    for scene in scenes:
        for statement in statements(scene, 8):
            for word in set(statement.text.split()):
                seen[word].append(statement.true)
    for word, truths in seen.items():
        if len(truths) > 400:
            assert 0.42 < sum(truths) / len(truths) < 0.58, word


def test_no_word_gives_away_yes_or_no(scenes):
    seen: dict[str, list[bool]] = defaultdict(list)
    for scene in scenes:
        for question in questions(scene, 12):
            if question.answer in ("yes", "no"):
                for word in set(question.text.split()):
                    seen[word].append(question.answer == "yes")
    for word, answers in seen.items():
        if len(answers) > 400:
            assert 0.42 < sum(answers) / len(answers) < 0.58, word


def test_phrases_point_to_one_thing(scenes):
    for scene in scenes:
        for phrase in phrases(scene):
            assert pointed(scene, phrase.text.split()) == phrase.thing


def test_only_things_that_look_alike_lack_a_phrase(scenes):
    for scene in scenes:
        looks = Counter((thing.size, thing.texture, thing.color, thing.shape) for thing in scene.things)
        told = {phrase.thing for phrase in phrases(scene)}
        for at, thing in enumerate(scene.things):
            assert at in told or looks[thing.size, thing.texture, thing.color, thing.shape] > 1


def test_phrases_use_no_more_words_than_they_need(scenes):
    for scene in scenes[:300]:
        for phrase in phrases(scene):
            _, *adjectives, noun = halves(phrase.text.split())[0]
            if " of " in phrase.text or " above " in phrase.text or " below " in phrase.text:
                continue
            for left_out in range(len(adjectives)):
                fewer = adjectives[:left_out] + adjectives[left_out + 1 :]
                assert len(fitting(scene, [*fewer, noun])) > 1


def test_texts_of_a_scene_differ_and_fewer_are_the_first_of_more(scenes):
    for scene in scenes[:200]:
        for ask, most in ((questions, MAX_QUESTIONS), (statements, MAX_STATEMENTS)):
            found = ask(scene, most)
            assert len({each.text for each in found}) == most
            assert ask(scene, 5) == found[:5]
    with pytest.raises(ConfigError, match="21 questions"):
        questions(scenes[0], 21)
    with pytest.raises(ConfigError, match="21 statements"):
        statements(scenes[0], 21)


def test_the_vocabulary_is_the_words_that_are_used(scenes):
    used: set[str] = set()
    for scene in scenes[500:1500]:
        texts = [each.text for each in (*questions(scene, 6), *statements(scene, 6), *phrases(scene))]
        used.update(word for text in texts for word in text.split())
        used.update(word for each in captions(scene, 5) for word in each.words)
    assert tuple(sorted(used)) == VOCABULARY
    assert len(VOCABULARY) < 120
