"""Chooses words that make sense together, and that belong to the split.

A training sentence is built from open combinations only. A held-out one takes reserved combinations half of
the time where there are any.
"""

from collections.abc import Sequence
from typing import TypeVar

from regard.worlds.dictionary import Dictionary
from regard.worlds.drawing import Draw
from regard.worlds.english import FIRST, THEY, THIRD, WE
from regard.worlds.lexicon import Frame, Noun, Pronoun, Spot, Tense, Verb
from regard.worlds.nominals import person
from regard.worlds.pieces import Piece
from regard.worlds.plans import Action, Both, Location, Nominal, Place, Relative, State, Subject

T = TypeVar("T")
Object = Nominal | Both | Pronoun | None


class Chooser:
    """The choices of one sentence, drawn in order."""

    def __init__(self, words: Dictionary, draw: Draw, *, heldout: bool) -> None:
        self.words = words
        self.draw = draw
        self.pick = draw.pick
        self.one_in = draw.one_in
        self.heldout = heldout

    def combine(self, options: tuple[Sequence[T], Sequence[T]]) -> T:
        """One of (open, reserved) options."""
        allowed, kept = options
        if self.heldout and kept and (not allowed or self.one_in(2)):
            return self.pick(kept)
        return self.pick(allowed)

    def nominal(self, noun: Noun, role: str) -> Nominal:
        """A noun in a role, sometimes with an adjective."""
        determiner, plural = self.pick(noun.determiners[role])
        adjective = None
        if noun.attributes[0] and self.one_in(4) and determiner.lemma != "how many":
            adjective = self.combine(noun.attributes)
        return Nominal(determiner, noun, plural, adjective)

    def rich_nominal(self, noun: Noun, role: str) -> Nominal:
        """A nominal that sometimes has an `of` or a relative clause."""
        if noun.wholes and self.one_in(4):
            the = self.words.determiners["the"]
            whole = self.nominal(self.pick(noun.wholes), "place")
            return Nominal(the, noun, self.one_in(4), of=whole)
        if noun.sayings and self.one_in(9):
            nominal = self.nominal(noun, "head")
            return nominal._replace(relative=self.relative(nominal))
        return self.nominal(noun, role)

    def pronoun(self, other: Pronoun | None = None) -> Pronoun:
        """A pronoun; beside another one, someone else."""
        pronouns = tuple(self.words.pronouns.values())
        chosen = self.pick(pronouns)
        while other is not None and not _distinct(chosen, other):
            chosen = self.pick(pronouns)
        return chosen

    def another(self, nouns: Sequence[Noun], taken: Sequence[Noun]) -> Noun:
        """One of the nouns that is not taken yet."""
        noun = self.pick(nouns)
        while noun in taken:
            noun = self.pick(nouns)
        return noun

    def subject(self, frame: Frame, other: Object, *, rich: bool) -> Subject:
        """Someone who may do it, and not the same as the object; `rich` allows long ones."""
        if frame.human and self.one_in(2):
            return self.pronoun(other if isinstance(other, Pronoun) else None)
        taken = _nouns(other)
        noun = self.another(frame.subjects, taken)
        if not rich:
            return self.nominal(noun, "topic")
        if self.one_in(9):
            second = self.another(frame.subjects, [*taken, noun])
            return Both(self.nominal(noun, "together"), self.nominal(second, "together"))
        return self.rich_nominal(noun, "subject")

    def object(self, frame: Frame, *, negated: bool, rich: bool) -> Object:
        """What it is done to, or nothing where the verb takes nothing."""
        if not frame.objects[0]:
            return None
        if "who" in frame.question_words and self.one_in(6):
            return self.pronoun()
        noun = self.combine(frame.objects)
        if "new" in frame.verb.flags:
            return self.nominal(noun, "none" if negated else "new")
        if frame.verb.preposition is not None and not noun.person:
            return self.nominal(noun, "reached")
        if negated:
            return self.nominal(noun, "negated")
        if not rich:
            return self.nominal(noun, "object")
        if len(frame.objects[0]) > 2 and frame.verb.preposition is None and self.one_in(12):
            second = self.another(frame.objects[0], [noun])
            return Both(self.nominal(noun, "object"), self.nominal(second, "object"))
        return self.rich_nominal(noun, "object")

    def object_beside(self, taken: Sequence[Subject | Object], frame: Frame, *, negated: bool) -> Object:
        """A short object that is none of those taken."""
        nouns = [noun for phrase in taken for noun in _nouns(phrase)]
        pronouns = [phrase for phrase in taken if isinstance(phrase, Pronoun)]
        while True:
            found = self.object(frame, negated=negated, rich=False)
            if isinstance(found, Pronoun):
                if all(_distinct(found, pronoun) for pronoun in pronouns):
                    return found
            elif not any(noun in nouns for noun in _nouns(found)):
                return found

    def place(self, spots: Sequence[Spot]) -> Place:
        preposition, nouns = self.pick(spots)
        return Place(preposition, self.nominal(self.pick(nouns), "place"))

    def surroundings(self, frame: Frame, taken: Sequence[Noun]) -> Place | None:
        """Where it is done, or with whom, or neither."""
        if "lay" in frame.verb.flags:
            return self.place(frame.spots)
        if not frame.spots or not self.one_in(3):
            return None
        if frame.human and self.one_in(4):
            friend = self.another(frame.subjects, taken)
            company = self.words.prepositions[self.pick(("with", "with", "without"))]
            return Place(company, self.nominal(friend, "topic"))
        return self.place(frame.spots)

    def recipient(self, frame: Frame, taken: Sequence[Noun]) -> Nominal | None:
        if "give" not in frame.verb.flags or self.one_in(5):
            return None
        return self.nominal(self.another(frame.subjects, taken), "subject")

    def tense(self, verb: Verb, person: int, *, supported: bool) -> Tense:
        """A tense whose English form tells it: never `i read`, which may be now or then."""
        tense = self.pick(verb.tenses)
        if verb.past_like_base and not supported and person != THIRD:
            return "progressive"
        return tense

    def action(
        self, frame: Frame, *, rich: bool = True, asked: bool = False, tense: Tense | None = None
    ) -> tuple[Subject, Action]:
        """A whole event: who does what to whom, and where."""
        negated = self.one_in(10 if asked else 6)
        object_ = self.object(frame, negated=negated, rich=rich)
        subject = self.subject(frame, object_, rich=rich)
        return subject, self.complete(frame, subject, object_, negated=negated, asked=asked, tense=tense)

    def complete(
        self,
        frame: Frame,
        subject: Subject,
        object_: Object,
        *,
        negated: bool,
        asked: bool = False,
        tense: Tense | None = None,
    ) -> Action:
        """The rest of an action once its subject and object stand; a tense given must be one of the verb's."""
        taken = [*_nouns(subject), *_nouns(object_)]
        tense = tense or self.tense(frame.verb, person_of(subject), supported=negated or asked)
        habit = tense == "present" and "state" not in frame.verb.flags
        adverb = None
        if habit and not negated and not asked and self.one_in(6):
            adverb = self.pick(tuple(self.words.adverbs.values()))
        recipient = self.recipient(frame, taken)
        place = self.surroundings(frame, taken)
        return Action(frame.verb, tense, negated, object_, recipient, place, adverb)

    def time(self, action: Action, *, often: int = 5) -> Piece | None:
        """A time that fits the tense, or none; a habit that has its adverb needs no other."""
        if "state" in action.verb.flags or action.adverb is not None or not self.one_in(often):
            return None
        return self.pick(self.words.times[action.tense])

    def relative(self, nominal: Nominal) -> Relative:
        """Something that may be said of a noun: what it does, how it is, where it is, what is done to it."""
        noun = nominal.noun
        kind = self.pick(noun.sayings)
        if kind == "is":
            return Relative(State(self.combine(noun.states), self.one_in(5)))
        if kind == "lies":
            return Relative(Location(self.place(noun.spots)))
        if kind == "undergoes":
            return self.undergoing(noun)
        frame = self.pick(noun.acts)
        negated = self.one_in(5)
        object_ = self.object_beside((nominal,), frame, negated=negated)
        return Relative(self.complete(frame, nominal, object_, negated=negated)._replace(adverb=None))

    def undergoing(self, noun: Noun) -> Relative:
        frame = self.combine(noun.undergoes)
        subject: Pronoun | Nominal
        if frame.human and self.one_in(2):
            subject = self.pronoun()
        else:
            subject = self.nominal(self.another(frame.subjects, [noun]), "topic")
        negated = self.one_in(6)
        tense = self.tense(frame.verb, person_of(subject), supported=negated)
        return Relative(Action(frame.verb, tense, negated), subject)


def person_of(subject: Subject) -> int:
    """The person of the verb, as an index of the tables of persons."""
    if isinstance(subject, Nominal):
        return person(subject)
    if isinstance(subject, Pronoun):
        return subject.person
    return THEY if isinstance(subject, Both) else THIRD


def _nouns(phrase: Subject | Object) -> tuple[Noun, ...]:
    if isinstance(phrase, Nominal):
        return (phrase.noun,)
    return (phrase.first.noun, phrase.second.noun) if isinstance(phrase, Both) else ()


def _distinct(one: Pronoun, other: Pronoun) -> bool:
    """`i see you`, `he sees her`, but not `i see me` nor `i see us`."""
    if one is other:
        return False
    return not {one.person, other.person} <= {FIRST, WE}
