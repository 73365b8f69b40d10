"""Compose whole sentences: statements, questions, and two clauses together."""

from collections.abc import Callable
from typing import Literal

from regard.synthetic.seeded import seed_name
from regard.synthetic.translation.choosing import Chooser
from regard.synthetic.translation.dictionary import dictionary
from regard.synthetic.translation.lexicon import Frame, Pronoun, Tense, reserved
from regard.synthetic.translation.plans import (
    Action,
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
    combinations,
)

Split = Literal["train", "validation"]


def plan(index: int, seed: int, split: Split) -> Plan:
    """What sentence `index` of a split says.

    Held-out sentences are drawn until one holds a reserved combination; a training sentence never can.
    """
    words = dictionary()
    validation = split == "validation"
    attempt = 0
    while True:
        chooser = Chooser(words, f"{seed} {seed_name(split)} {index} {attempt}", validation=validation)
        chosen = chooser.pick(_KINDS)(chooser)
        if not validation or any(reserved(word, noun) for word, noun in combinations(chosen)):
            return chosen
        attempt += 1


def _frame(chooser: Chooser, fits: Callable[[Frame], bool] | None = None) -> Frame:
    """A frame of any verb, each verb as likely; `fits` narrows the choice."""
    frames = chooser.words.frames
    frame = chooser.pick(chooser.pick(frames))
    while fits is not None and not fits(frame):
        frame = chooser.pick(chooser.pick(frames))
    return frame


def _event(chooser: Chooser) -> Clause:
    subject, action = chooser.action(_frame(chooser))
    return Clause(subject, action, chooser.time(action), chooser.one_in(3))


def _state(chooser: Chooser, *, passing: bool = False) -> Clause:
    """How something is; `passing` asks for what may change, which is estar or tener in Spanish."""
    described = chooser.pick(chooser.words.descriptions)
    while passing and described.adjective.copula == "ser":
        described = chooser.pick(chooser.words.descriptions)
    adjective = described.adjective
    subject: Subject
    if described.human and chooser.one_in(3):
        subject = chooser.pronoun()
    else:
        subject = chooser.nominal(chooser.combine(described.nouns), "topic")._replace(adjective=None)
    moody = described.human and adjective.copula != "ser"
    if moody and chooser.one_in(6):
        adverb = chooser.pick(chooser.words.any_adverb)
        return Clause(subject, State(adjective, adverb=adverb))
    time = chooser.pick(chooser.words.times["progressive"]) if moody and chooser.one_in(6) else None
    return Clause(subject, State(adjective, chooser.one_in(5)), time, chooser.one_in(3))


def _location(chooser: Chooser) -> Clause:
    noun = chooser.pick(chooser.words.located)
    subject: Subject = chooser.nominal(noun, "topic")
    if noun.person and chooser.one_in(2):
        subject = chooser.pronoun()
    return Clause(subject, Location(chooser.place(noun.spots), chooser.one_in(5)))


def _existence(chooser: Chooser) -> Existence:
    noun = chooser.pick(chooser.words.strangers)
    return Existence(chooser.nominal(noun, "new"), chooser.place(noun.spots), chooser.one_in(4))


def _yes_or_no(chooser: Chooser) -> Question:
    chooser.ask()
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
    frame = _frame(chooser, lambda frame: frame.human)
    negated = chooser.one_in(8)
    object_ = chooser.object(frame, negated=negated, rich=False)
    action = chooser.complete(frame, Who(), object_, negated=negated)._replace(adverb=None)
    return Question(Clause(Who(), action, chooser.time(action)))


def _what(chooser: Chooser) -> Question:
    """A question about the object: what, who, which book, how many books."""
    chooser.ask()
    frame = _frame(chooser, lambda frame: bool(frame.question_words))
    word = chooser.words.question_words[chooser.pick(frame.question_words)]
    asked: Nominal | None = None
    if frame.askable[0] and chooser.one_in(2):
        asked = chooser.nominal(chooser.combine(frame.askable), "asked")
    subject = chooser.subject(frame, asked, rich=False, role="topic")
    action = chooser.complete(frame, subject, None, negated=False, asked=True)
    return Question(Clause(subject, action, chooser.time(action, often=8)), asked or word)


def _where(chooser: Chooser) -> Question:
    """A question about the circumstances: where, when, why."""
    chooser.ask()
    kind = chooser.pick(("where", "where is", "when", "why", "why is"))
    word = chooser.words.question_words[kind.split()[0]]
    if kind == "where is":
        return Question(Clause(_location(chooser).subject, Location(None)), word)
    if kind == "why is":
        subject, predicate, *_ = _state(chooser, passing=True)
        assert isinstance(predicate, State)
        return Question(Clause(subject, State(predicate.adjective)), word)
    subject, action = chooser.action(_frame(chooser, _FITS[kind]), rich=False, asked=True)
    if kind == "where":
        action = action._replace(place=None)
    if kind != "why":
        action = action._replace(negated=False)
    if kind == "when" and action.tense == "progressive":
        action = action._replace(tense="past")
    return Question(Clause(subject, action), word)


def _pair(chooser: Chooser) -> Compound:
    """Two clauses of one tense: `the boy sings and the girl dances`, `while the girl is dancing`."""
    conjunction = chooser.pick(("and", "and", "while"))
    tense: Tense = "progressive" if conjunction == "while" else chooser.pick(_TENSES)
    first = chooser.action(_frame(chooser, _can(tense)), rich=False, tense=tense)
    # A pronoun is dropped, so a new subject has to be named or nobody would notice it.
    second = chooser.action(_frame(chooser, _can(tense)), rich=False, tense=tense, named=True)
    return Compound(_bare(*first), chooser.words.conjunctions[conjunction], _bare(*second))


def _shared(chooser: Chooser) -> Compound:
    """Two things one does, `the boy eats bread and drinks milk`, or does and does not do."""
    tense = chooser.pick(_TENSES)
    fits = _can(tense, human=True)
    frame = other = _frame(chooser, fits)
    subject, action = chooser.action(frame, rich=False, tense=tense)
    but = chooser.one_in(2)
    taken = (subject, action.object)
    if not but or len(frame.objects[0]) < 4:  # otherwise `eats rice but does not eat meat`
        other = _frame(chooser, lambda each: fits(each) and each.verb is not frame.verb)
        taken = (subject, None)
    object_ = chooser.object_beside(taken, other, negated=but)
    second = chooser.complete(other, subject, object_, negated=but, tense=tense)
    conjunction = chooser.words.conjunctions["but" if but else "and"]
    return Compound(_bare(subject, action), conjunction, _bare(subject, second, negated=but), shared=True)


def _bare(subject: Subject, action: Action, *, negated: bool = False) -> Clause:
    return Clause(subject, action._replace(adverb=None, negated=negated))


def _because(chooser: Chooser) -> Compound:
    """What somebody does or does not do, and why: `... because he is tired`."""
    frames, negated, feelings = chooser.pick(chooser.words.reasons)
    frame = chooser.pick(frames)
    subject, action = chooser.action(frame, rich=False, tense="progressive")
    pronoun = _standing_for(chooser, subject)
    if pronoun is None:  # `they` is masculine here, so no pronoun stands for the women
        subject = pronoun = chooser.words.pronouns["we"]
        action = action._replace(object=chooser.object_beside((subject,), frame, negated=negated))
    because = chooser.words.conjunctions["because"]
    reason = Clause(pronoun, State(chooser.pick(feelings)))
    return Compound(_bare(subject, action, negated=negated), because, reason)


def _standing_for(chooser: Chooser, subject: Subject) -> Pronoun | None:
    if isinstance(subject, Pronoun):
        return subject
    assert isinstance(subject, Nominal)
    if subject.plural:
        return None if subject.noun.feminine else chooser.words.pronouns["they"]
    return chooser.words.pronouns["she" if subject.noun.feminine else "he"]


def _can(tense: Tense, *, human: bool = False) -> Callable[[Frame], bool]:
    """Frames of things that happen, in a tense that English tells in every person."""

    def fits(frame: Frame) -> bool:
        verb = frame.verb
        told = tense in verb.tenses and not verb.past_like_base and "state" not in verb.flags
        return told and (frame.human or not human)

    return fits


_TENSES: tuple[Tense, ...] = ("present", "progressive", "past")
_FITS: dict[str, Callable[[Frame], bool]] = {
    "where": lambda frame: bool(frame.spots) and "lay" not in frame.verb.flags,
    "when": lambda frame: "state" not in frame.verb.flags,
    "why": lambda frame: True,
}
# Repeated entries are drawn more often.
_KINDS: tuple[Callable[[Chooser], Plan], ...] = (
    *[_event] * 30,
    *[_state] * 9,
    *[_location] * 3,
    *[_existence] * 3,
    *[_yes_or_no] * 5,
    *[_who] * 2,
    *[_what] * 3,
    *[_where] * 3,
    *[_shared] * 1,
    *[_pair] * 1,
    *[_because] * 1,
)
