"""What a sentence says, before it is written in either language: a small tree of words and choices."""

from collections.abc import Iterator
from typing import NamedTuple

from regard.synthetic.translation.aligned_phrases import AlignedPhrase
from regard.synthetic.translation.lexicon import Adjective, Determiner, Noun, Pronoun, Tense, Verb


class Nominal(NamedTuple):
    """A noun with what surrounds it: `the red house`, `the son of the baker`, `the man who sees the dog`."""

    determiner: Determiner
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    of: "Nominal | None" = None
    relative: "Relative | None" = None


class Both(NamedTuple):
    """Two of them: `the boy and the girl`."""

    first: Nominal
    second: Nominal


class Who(NamedTuple):
    """The subject of a question: `who sees the dog?`"""


Subject = Pronoun | Nominal | Both | Who


class Place(NamedTuple):
    """A preposition with what follows: `in the garden`, `with my sister`."""

    preposition: AlignedPhrase
    nominal: Nominal


class Action(NamedTuple):
    """A verb with its objects. In `the book that she reads` the object is the noun outside, so none is here."""

    verb: Verb
    tense: Tense
    negated: bool = False
    object: Nominal | Both | Pronoun | None = None
    recipient: Nominal | None = None
    place: Place | None = None
    adverb: AlignedPhrase | None = None


class State(NamedTuple):
    """A predicate adjective: `is red`, `is not tired`."""

    adjective: Adjective
    negated: bool = False
    adverb: AlignedPhrase | None = None


class Location(NamedTuple):
    """Where something is; without a place the question `where is ...?`"""

    place: Place | None
    negated: bool = False


Predicate = Action | State | Location


class Relative(NamedTuple):
    """A clause about a noun: the noun is its subject when `subject` is None, and else its object."""

    predicate: Predicate
    subject: Pronoun | Nominal | None = None


class Clause(NamedTuple):
    """A subject and what is said of it; the time may come first."""

    subject: Subject
    predicate: Predicate
    time: AlignedPhrase | None = None
    time_first: bool = False


class Existence(NamedTuple):
    """`there is a cat in the garden`, or whether there is."""

    nominal: Nominal
    place: Place
    asked: bool = False


class Question(NamedTuple):
    """A clause as a question; `word` is what, who, where, which book, or nothing for yes and no.

    When the subject is Who the clause keeps its order and there is no other word.
    """

    clause: Clause
    word: AlignedPhrase | Nominal | None = None


class Compound(NamedTuple):
    """Two clauses and what joins them; with `shared`, the second leaves its subject out."""

    first: Clause
    conjunction: AlignedPhrase
    second: Clause
    shared: bool = False


Plan = Clause | Existence | Question | Compound


def nominals_of(phrase: Subject | None) -> tuple[Nominal, ...]:
    """The nominals of a subject or object: none in a pronoun, two in `the boy and the girl`."""
    if isinstance(phrase, Nominal):
        return (phrase,)
    return (phrase.first, phrase.second) if isinstance(phrase, Both) else ()


def combinations(plan: Plan) -> Iterator[tuple[str, str]]:
    """Every (verb, object) and (adjective, noun) that a plan puts together, by lemma."""
    if isinstance(plan, Existence):
        yield from _in_nominal(plan.nominal)
        yield from _in_nominal(plan.place.nominal)
    elif isinstance(plan, Compound):
        yield from combinations(plan.first)
        yield from combinations(plan.second)
    elif isinstance(plan, Question):
        yield from combinations(plan.clause)
        if isinstance(plan.word, Nominal):
            yield from _in_nominal(plan.word)
            yield from _with_object(plan.clause.predicate, plan.word)
    else:
        for nominal in nominals_of(plan.subject):
            yield from _in_nominal(nominal)
        yield from _in_predicate(plan.predicate, plan.subject)


def _in_nominal(nominal: Nominal) -> Iterator[tuple[str, str]]:
    if nominal.adjective is not None:
        yield nominal.adjective.lemma, nominal.noun.lemma
    if nominal.of is not None:
        yield from _in_nominal(nominal.of)
    if nominal.relative is None:
        return
    predicate, subject = nominal.relative
    if subject is None:
        yield from _in_predicate(predicate, nominal)
    else:
        for other in nominals_of(subject):
            yield from _in_nominal(other)
        yield from _in_predicate(predicate, subject)
        yield from _with_object(predicate, nominal)


def _in_predicate(predicate: Predicate, subject: Subject) -> Iterator[tuple[str, str]]:
    if isinstance(predicate, State):
        for nominal in nominals_of(subject):
            yield predicate.adjective.lemma, nominal.noun.lemma
        return
    if predicate.place is not None:
        yield from _in_nominal(predicate.place.nominal)
    if isinstance(predicate, Action):
        for nominal in nominals_of(predicate.object):
            yield from _in_nominal(nominal)
            yield predicate.verb.lemma, nominal.noun.lemma
        if predicate.recipient is not None:
            yield from _in_nominal(predicate.recipient)


def _with_object(predicate: Predicate, nominal: Nominal) -> Iterator[tuple[str, str]]:
    assert isinstance(predicate, Action)
    yield predicate.verb.lemma, nominal.noun.lemma
