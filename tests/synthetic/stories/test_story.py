"""What holds for every story: its grammar, its balance, and that no shortcut tells what `it` means."""

import re
import sys
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from regard.errors import ConfigError
from regard.synthetic.stories.causes import CAUSES
from regard.synthetic.stories.story import VOCABULARY, Stories, Story, adjectives, main
from regard.synthetic.stories.telling import ACTOR_FIRST, ACTOR_SECOND
from regard.synthetic.stories.vocabulary import BOYS, DAYS, FRAMES, GIRLS, SMALL, STRONG, VEHICLES

ANIMALS = {actor.noun for actor in STRONG + SMALL}
DRIVEN = {actor.noun for actor in VEHICLES}
BASES = {frame.base for frame in FRAMES} | {"like"}


@pytest.fixture(scope="module")
def training() -> list[Story]:
    return list(Stories(seed=1).stories(0, 30_000))


@pytest.fixture(scope="module")
def validation() -> list[Story]:
    return list(Stories(seed=1, part="validation").stories(0, 10_000))


def question(story: Story) -> tuple[str, str, str, int]:
    """The two candidates in the order they stand, the adjective, and the answer."""
    found = story.coreferences[0]
    words = story.sentences[found.sentence].split()
    first, second = found.candidates
    return words[first], words[second], words[-2], found.answer


def triple(story: Story) -> tuple[str, str, str]:
    """Who acts, on what, and the adjective."""
    first, second, adjective, _ = question(story)
    return (second, first, adjective) if acts_second(story) else (first, second, adjective)


def acts_second(story: Story) -> bool:
    sentence = story.sentences[story.coreferences[0].sentence]
    return re.search(r" (by|for) the \w+ (because|but) it ", sentence) is not None


def fitting() -> set[tuple[str, str]]:
    """Which adjective can be said of which noun: read off the tables, to answer by meaning alone."""
    known = {(actor.noun, word) for frame in FRAMES for actor in frame.actors for word in frame.traits}
    return known | {(noun, word) for frame in FRAMES for noun, words in frame.objects.items() for word in words}


def test_a_story_is_a_function_of_seed_part_and_index() -> None:
    stories = Stories(seed=3)
    assert [stories[index] for index in (5, 4, 5)] == [stories[5], Stories(3)[4], stories[5]]
    assert list(stories.stories(10, 20)) == [stories[index] for index in range(10, 20)]
    assert stories[5] != Stories(seed=4)[5]
    assert stories[5] != Stories(seed=3, part="validation")[5]


def test_stories_are_the_same_in_every_process() -> None:
    """Pinned, so that neither Python's random hashes nor a new version can change the data unnoticed."""
    assert Stories()[0].text == PINNED


def test_an_unknown_part_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="'test' is unknown; choose one of training, validation"):
        Stories(part="test")  # type: ignore[arg-type]


def test_a_story_has_four_to_seven_sentences_of_words(training: list[Story], validation: list[Story]) -> None:
    for story in training + validation:
        assert 4 <= len(story.sentences) <= 7
        assert story.text.split("\n") == list(story.sentences)
        for sentence in story.sentences:
            assert re.fullmatch(r"([a-z]+ )+\.", sentence), sentence
    assert {len(story.sentences) for story in training} == {4, 5, 6, 7}


def test_grammar(training: list[Story]) -> None:
    for story in training:
        for sentence in story.sentences:
            words = sentence.split()
            for word, after in pairwise(words):
                assert word != after, sentence
                assert word != "a" or after[0] not in "aeiou", sentence
                assert word != "an" or after[0] in "aeiou" or after == "hour", sentence
                assert word not in ("a", "an", "the", "some") or after not in ("a", "an", "the", "some", "."), sentence
            did_not = re.search(r"\bdid not (\w+)", sentence)
            assert did_not is None or did_not[1] in BASES, sentence


def test_only_known_words_occur_and_all_of_them(training: list[Story], validation: list[Story]) -> None:
    used = {word for story in training + validation for sentence in story.sentences for word in sentence.split()}
    assert used <= set(VOCABULARY)
    assert len(used) > 0.99 * len(VOCABULARY)
    assert len(VOCABULARY) < 700
    assert list(VOCABULARY) == sorted(set(VOCABULARY))


def test_there_are_many_nouns_adjectives_and_forms() -> None:
    assert len(ANIMALS | DRIVEN) >= 20
    assert len({noun for frame in FRAMES for noun in frame.objects}) >= 20
    assert len({word for causes in CAUSES.values() for word in causes}) >= 24
    assert len(ACTOR_FIRST) == len(ACTOR_SECOND) == 4


def test_the_only_it_is_the_one_asked_about(training: list[Story]) -> None:
    nouns = ANIMALS | DRIVEN | {noun for frame in FRAMES for noun in frame.objects}
    for story in training:
        (found,) = story.coreferences
        assert [s.split().count("it") for s in story.sentences] == [
            int(number == found.sentence) for number in range(len(story.sentences))
        ]
        words = story.sentences[found.sentence].split()
        assert words[found.it : found.it + 3] == ["it", "was", "too"]
        assert tuple(place for place, word in enumerate(words) if word in nouns) == found.candidates
        assert found.candidates[0] < found.candidates[1] < found.it


def test_half_of_the_stories_name_the_noun_and_the_adjective_once_more(training: list[Story]) -> None:
    short = 0
    for story in training:
        first, second, adjective, answer = question(story)
        behind = story.sentences[story.coreferences[0].sentence + 1].split()
        if adjective in behind and behind[0] != "the":
            short += 1
            right, wrong = ((first, second), (second, first))[answer]
            assert right in behind
            assert wrong not in behind
    assert short / len(training) == pytest.approx(0.5, abs=0.03)


def test_the_meaning_tells_the_answer(training: list[Story], validation: list[Story]) -> None:
    """The adjective fits the noun that is meant and not the other: what a reader who knows the words would say."""
    fits = fitting()
    for story in training + validation:
        first, second, adjective, answer = question(story)
        assert [(first, adjective) in fits, (second, adjective) in fits] == [answer == 0, answer == 1]


def test_answers_are_balanced(training: list[Story], validation: list[Story]) -> None:
    """Overall, by the place of the one who acts, and by its role: within five standard deviations of a half."""
    for stories in (training[:5000], validation[:5000]):
        answers = [question(story)[3] for story in stories]
        behind = [acts_second(story) for story in stories]
        blamed = [answer == place for answer, place in zip(answers, behind, strict=True)]
        for share in (answers, behind, blamed):
            assert abs(sum(share) / 5000 - 0.5) < 0.036


def test_every_pair_of_nouns_has_both_answers_as_often(training: list[Story], validation: list[Story]) -> None:
    for stories in (training, validation):
        counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        for story in stories:
            subject, thing, _ = triple(story)
            counts[subject, thing][question(story)[3] ^ acts_second(story)] += 1
        assert len(counts) > 0.99 * sum(len(frame.actors) * len(frame.objects) for frame in FRAMES)
        spread = [(subjects - things) ** 2 / (subjects + things) for subjects, things in counts.values()]
        assert sum(spread) / len(spread) == pytest.approx(1, abs=5 * (2 / len(spread)) ** 0.5)  # that of fair coins


def test_both_parts_can_blame_either_noun_of_every_pair() -> None:
    pairs = [(frame, actor, noun) for frame in FRAMES for actor in frame.actors for noun in frame.objects]
    assert len({(actor.noun, noun) for _, actor, noun in pairs}) == len(pairs)  # so a triple has one frame
    for frame, actor, noun in pairs:
        for blamed in (False, True):
            assert len(adjectives(frame, actor, noun, blamed, "training")) >= 3
            assert len(adjectives(frame, actor, noun, blamed, "validation")) == 1


def test_neither_place_nor_adjective_nor_pair_tells_the_answer(training: list[Story], validation: list[Story]) -> None:
    """What a reader would score who learned only these from training."""

    def score(key) -> float:  # type: ignore[no-untyped-def]
        seen: dict[object, Counter[int]] = defaultdict(Counter)
        for story in training:
            seen[key(story)][question(story)[3]] += 1
        return sum(seen[key(story)].most_common(1)[0][0] == question(story)[3] for story in validation) / len(
            validation
        )

    assert score(lambda story: "first") == pytest.approx(0.5, abs=0.03)
    assert score(lambda story: question(story)[2]) < 0.6  # the adjective
    assert score(lambda story: question(story)[:2]) < 0.6  # the nouns in their order
    assert score(acts_second) < 0.55
    assert score(lambda story: (acts_second(story), question(story)[2])) < 0.9  # who acts, and the adjective


def test_three_kinds_of_nouns_meet_two_at_a_time(training: list[Story]) -> None:
    ways = {noun for frame in FRAMES if frame.setting in ("journey", "search") for noun in frame.objects}
    met = Counter((triple(s)[0] in DRIVEN, triple(s)[1] in ways) for s in training)
    assert len(met) == 4  # animal and way, animal and thing, vehicle and way, vehicle and animal
    assert min(met.values()) > 0.1 * len(training)


def test_no_validation_triple_is_in_training(training: list[Story], validation: list[Story]) -> None:
    known, new = {triple(story) for story in training}, {triple(story) for story in validation}
    assert not known & new
    assert 0.08 < len(new) / (len(new) + len(known)) < 0.16
    assert {word for _, _, word in new} <= {word for _, _, word in known}


def test_the_lecture_sentences_are_validation() -> None:
    crossing = FRAMES[0]
    (animal,) = (actor for actor in crossing.actors if actor.noun == "animal")
    assert adjectives(crossing, animal, "street", True, "validation") == ("tired",)
    assert adjectives(crossing, animal, "street", False, "validation") == ("wide",)


def test_a_story_hangs_together(training: list[Story]) -> None:
    """One name with its pronouns, one day with its weather, and the act fails before it is done."""
    for story in training:
        words = set(story.text.split())
        assert len(words & set(GIRLS + BOYS)) == 1
        assert not (words & set(GIRLS) and words & {"he", "his", "boy"})
        assert not (words & set(BOYS) and words & {"she", "her", "girl"})
        for weather, day in DAYS.items():
            assert day not in words or f"{weather} {day}" in story.text
        done = [number for number, sentence in enumerate(story.sentences) if sentence.startswith("then ")]
        assert all(number > story.coreferences[0].sentence for number in done)


def test_a_sentence_of_another_story_is_rarely_the_true_next(training: list[Story]) -> None:
    same = asked = 0
    for story, other in pairwise(training[:5000]):
        for number in range(1, len(story.sentences)):
            asked += 1
            same += story.sentences[number] == other.sentences[number % len(other.sentences)]
    assert same / asked < 0.01


def test_stories_do_not_repeat(training: list[Story]) -> None:
    assert len({story.text for story in training}) > 0.99 * len(training)


def test_a_sample_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["stories", "--count", "2", "--part", "validation"])
    main()
    printed = capsys.readouterr().out
    for story in Stories(part="validation").stories(0, 2):
        first, second, _, answer = question(story)
        assert f"{story.text}\n  it = {(first, second)[answer]}\n\n" in printed


PINNED = """\
on a hot friday a woman named mia set out with a green tractor .
mia had a silver drum for a friend who lived at the end of the path .
the tractor had stood in the rain for years .
the path could not be followed by the tractor because it was too rusty .
mia put oil on the tractor .
at last mia and the green tractor arrived with the silver drum ."""
