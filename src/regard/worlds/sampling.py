"""Composes whole sentences: statements, questions, and two clauses together."""

from collections.abc import Callable
from typing import Literal

from regard.worlds.choosing import Chooser
from regard.worlds.dictionary import dictionary
from regard.worlds.drawing import Draw
from regard.worlds.english import THIRD
from regard.worlds.lexicon import Frame, Pronoun
from regard.worlds.plans import (
    Action,
    Both,
    Clause,
    Compound,
    Existence,
    Location,
    Nominal,
    Plan,
    Question,
    State,
    Subject,
    Who,
)
from regard.worlds.vocabulary import FEELINGS

Split = Literal["train", "heldout"]


def plan(index: int, seed: int, split: Split) -> Plan:
    """What sentence `index` of a split says."""
    words = dictionary()
    heldout = split == "heldout"
    attempt = 0
    while True:
        chooser = Chooser(words, Draw(f"{seed} {split} {index} {attempt}"), heldout=heldout)
        chosen = chooser.pick(_KINDS)(chooser)
        if chooser.found or not heldout:
            return chosen
        attempt += 1


def _frame(chooser: Chooser, *, human: bool = False) -> Frame:
    frame = chooser.pick(chooser.pick(chooser.words.frames))
    while human and not frame.human:
        frame = chooser.pick(chooser.pick(chooser.words.frames))
    return frame


def _event(chooser: Chooser) -> Clause:
    subject, action = chooser.action(_frame(chooser))
    return Clause(subject, action, chooser.time(action), chooser.one_in(3))


def _state(chooser: Chooser) -> Clause:
    described = chooser.pick(chooser.words.descriptions)
    adjective = described.adjective
    subject: Subject
    if described.human and chooser.one_in(3):
        subject = chooser.pronoun()
    else:
        subject = chooser.nominal(chooser.combine(described.nouns), "topic")._replace(adjective=None)
    passing = described.human and adjective.copula != "ser"
    if passing and chooser.one_in(6):
        adverb = chooser.pick(tuple(chooser.words.adverbs.values()))
        return Clause(subject, State(adjective, adverb=adverb))
    time = chooser.pick(chooser.words.times["progressive"]) if passing and chooser.one_in(6) else None
    return Clause(subject, State(adjective, chooser.one_in(5)), time, chooser.one_in(3))


def _location(chooser: Chooser) -> Clause:
    noun = chooser.pick(chooser.words.located)
    subject: Subject = chooser.nominal(noun, "topic")
    if noun.person and chooser.one_in(2):
        subject = chooser.pronoun()
    return Clause(subject, Location(chooser.place(noun.spots), chooser.one_in(5)))


def _existence(chooser: Chooser) -> Existence:
    noun = chooser.pick(chooser.words.located)
    return Existence(chooser.nominal(noun, "new"), chooser.place(noun.spots), chooser.one_in(4))


def _yes_or_no(chooser: Chooser) -> Question:
    kind = chooser.pick(("event", "event", "event", "state", "location"))
    if kind == "event":
        subject, action = chooser.action(_frame(chooser), rich=False, asked=True)
        return Question(Clause(subject, action, chooser.time(action)))
    subject, predicate, *_ = _state(chooser) if kind == "state" else _location(chooser)
    if isinstance(predicate, State):
        return Question(Clause(subject, State(predicate.adjective)))
    assert isinstance(predicate, Location)
    return Question(Clause(subject, Location(predicate.place)))


def _who(chooser: Chooser) -> Question:
    """A question about the subject."""
    frame = _frame(chooser, human=True)
    negated = chooser.one_in(8)
    object_ = chooser.object(frame, negated=negated, rich=True)
    action = chooser.complete(frame, Who(), object_, negated=negated)
    return Question(Clause(Who(), action, chooser.time(action)))


def _what(chooser: Chooser) -> Question:
    """A question about the object: what, who, which book, how many books."""
    frame = _frame(chooser)
    while not frame.question_words:
        frame = _frame(chooser)
    word = chooser.words.question_words[chooser.pick(frame.question_words)]
    asked: Nominal | None = None
    if frame.askable[0] and chooser.one_in(2):
        asked = chooser.nominal(chooser.combine(frame.askable), "asked")
    subject = chooser.subject(frame, asked, rich=False)
    action = chooser.complete(frame, subject, None, negated=False, asked=True)
    return Question(Clause(subject, action, chooser.time(action, often=8)), asked or word)


def _where(chooser: Chooser) -> Question:
    """A question about the circumstances: where, when, why."""
    kind = chooser.pick(("where", "where is", "when", "why", "why is"))
    word = chooser.words.question_words[kind.split()[0]]
    if kind == "where is":
        return Question(Clause(_location(chooser).subject, Location(None)), word)
    if kind == "why is":
        subject, predicate, *_ = _state(chooser)
        assert isinstance(predicate, State)
        return Question(Clause(subject, State(predicate.adjective)), word)
    frame = _frame(chooser)
    while (kind == "where" and not frame.spots) or (kind == "when" and "state" in frame.verb.flags):
        frame = _frame(chooser)
    subject, action = chooser.action(frame, rich=False, asked=True)
    if kind == "where":
        action = action._replace(place=None)
    if kind != "why":
        action = action._replace(negated=False)
    if kind == "when" and action.tense == "progressive":
        action = action._replace(tense="past")
    return Question(Clause(subject, action), word)


def _two_events(chooser: Chooser) -> Compound:
    """Two clauses of one tense: `the boy sings and the girl dances`, `while the girl is dancing`."""
    conjunction = chooser.pick(("and", "and", "while"))
    first, second = _simple_event(chooser), _simple_event(chooser)
    while not _same_time(first, second) or (conjunction == "while" and _tense(first) != "progressive"):
        first, second = _simple_event(chooser), _simple_event(chooser)
    return Compound(first, chooser.words.conjunctions[conjunction], second)
