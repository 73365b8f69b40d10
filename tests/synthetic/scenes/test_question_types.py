"""Kinds of questions are told by their words, as the world draws them."""

import pytest

from regard.synthetic.scenes.facts import presence, standing, trait
from regard.synthetic.scenes.question_types import phrase_kind, question_kind, statement_kind
from regard.synthetic.scenes.questions import questions
from regard.synthetic.scenes.referring import direct, relational
from regard.synthetic.scenes.scene import Scenes
from regard.synthetic.scenes.statements import statements
from regard.synthetic.seeded import Draw


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("what color is the ring ?", "color"),
        ("how many red things are there ?", "count"),
        ("is there a large star ?", "presence"),
        ("is the star above the ring ?", "place"),
        ("is the star above the ring a star ?", "trait"),
        ("is the thing left of the red ring striped ?", "trait"),
    ],
)
def test_a_question_is_of_the_kind_its_words_say(text, kind):
    assert question_kind(text) == kind


@pytest.mark.parametrize("true", [True, False])
def test_facts_are_of_the_kind_they_were_drawn_as(true):
    for index in range(150):
        scene, draw = Scenes()[index], Draw(f"kinds {index}")
        for make, kind in ((trait, "trait"), (standing, "place"), (presence, "presence")):
            fact = make(draw, scene, true=true)
            if fact is not None:
                assert question_kind(f"is {fact.subject} {fact.rest} ?") == kind
                assert statement_kind(f"{fact.subject} is {fact.rest}") == kind


def test_all_that_is_asked_has_a_kind():
    asked = [question_kind(one.text) for index in range(100) for one in questions(Scenes()[index], 10)]
    assert set(asked) == {"color", "shape", "size", "texture", "count", "presence", "place", "trait"}
    stated = [statement_kind(one.text) for index in range(100) for one in statements(Scenes()[index], 10)]
    assert set(stated) == {"count", "presence", "place", "trait"}


def test_phrases_are_direct_or_relational():
    for index in range(100):
        scene = Scenes()[index]
        for thing in range(len(scene.things)):
            assert {phrase_kind(one.text) for one in direct(scene, thing)} <= {"direct"}
            assert {phrase_kind(one.text) for one in relational(scene, thing)} <= {"relational"}
