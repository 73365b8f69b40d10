"""Choose words that make sense together and belong to the split.

A training sentence uses open combinations only. A validation sentence uses a reserved combination three times in four,
where there is one.
"""

from collections.abc import Sequence
from typing import TypeVar

from regard.synthetic.seeded import Draw
from regard.synthetic.translation.aligned_phrases import AlignedPhrase
from regard.synthetic.translation.dictionary import Dictionary
from regard.synthetic.translation.english import FIRST, THIRD, WE
from regard.synthetic.translation.lexicon import Frame, Noun, Pronoun, Spot, Tense, Verb
from regard.synthetic.translation.nominals import person_of
from regard.synthetic.translation.plans import (
    Action,
    Both,
    Location,
    Nominal,
    Place,
    Relative,
    State,
    Subject,
    nominals_of,
)
from regard.synthetic.translation.verbs import CLASHES

T = TypeVar("T")
Object = Nominal | Both | Pronoun | None


class Chooser(Draw):
    """The random choices of one sentence, in order; `key` determines all of them."""

    __slots__ = ("pronouns", "validation", "words")

    def __init__(self, words: Dictionary, key: str, *, validation: bool) -> None:
        super().__init__(key)
        self.words = words
        self.validation = validation
        self.pronouns = words.any_pronoun

    def combine(self, options: tuple[Sequence[T], Sequence[T]]) -> T:
        """One of (open, reserved) options."""
        allowed, kept = options
        if self.validation and kept and not (allowed and self.one_in(4)):
            return self.pick(kept)
        return self.pick(allowed)

    def nominal(self, noun: Noun, role: str, verb: Verb | None = None) -> Nominal:
        """A noun in a role, sometimes with an adjective that suits the verb."""
        determiner, plural = self.pick(noun.determiners[role])
        adjective = None
        if noun.attributes[0] and self.one_in(5) and determiner.lemma != "how many":
            adjective = self.combine(noun.attributes)
            if verb is not None and adjective.lemma == CLASHES.get(verb.lemma):
                adjective = None
        return Nominal(determiner, noun, plural, adjective)

    def rich_nominal(self, noun: Noun, role: str, verb: Verb) -> Nominal:
        """A nominal that sometimes has an `of` or a relative clause, about something else than the verb."""
        if noun.wholes and self.one_in(8):
            the = self.words.determiners["the"]
            whole = self.nominal(self.pick(noun.wholes), "place")
            return Nominal(the, noun, self.one_in(4), of=whole)
        if noun.sayings and self.one_in(30):
            nominal = self.nominal(noun, "head", verb)
            relative = self.relative(nominal)
            told = relative.predicate
            if isinstance(told, Action) and told.verb is verb:
                return nominal
            adjective = None if isinstance(told, State) else nominal.adjective
            return nominal._replace(adjective=adjective, relative=relative)
        return self.nominal(noun, role, verb)

    def pronoun(self, other: Pronoun | None = None) -> Pronoun:
        """A pronoun; beside another one, someone else."""
        chosen = self.pick(self.pronouns)
        while other is not None and not _distinct(chosen, other):
            chosen = self.pick(self.pronouns)
        return chosen

    def ask(self) -> None:
        """From here on it is a question: no `i` or `we` as the subject."""
        self.pronouns = self.words.asked_pronoun

    def another(self, nouns: Sequence[Noun], taken: Sequence[Noun]) -> Noun:
        """One of the nouns that is not taken yet."""
        noun = self.pick(nouns)
        while noun in taken:
            noun = self.pick(nouns)
        return noun

    def subject(self, frame: Frame, other: Object, *, rich: bool, role: str, named: bool = False) -> Subject:
        """Someone who may do it, and not the same as the object; `rich` allows long ones, `named` no pronoun."""
        if frame.human and not named and self.one_in(2):
            return self.pronoun(other if isinstance(other, Pronoun) else None)
        taken = _nouns(other) if other is not None else ()
        noun = self.another(frame.subjects, taken)
        if not rich:
            return self.nominal(noun, role)
        if self.one_in(20):
            second = self.another(frame.subjects, [*taken, noun])
            return Both(self.nominal(noun, "together"), self.nominal(second, "together"))
        return self.rich_nominal(noun, role, frame.verb)

    def object(self, frame: Frame, *, negated: bool, rich: bool) -> Object:
        """What it is done to, or nothing where the verb takes nothing."""
        if not frame.objects[0]:
            return None
        if "who" in frame.question_words and self.one_in(6):
            return self.pronoun()
        noun, verb = self.combine(frame.objects), frame.verb
        if rich and not negated and "new" not in verb.flags and verb.preposition is None:
            if len(frame.objects[0]) > 2 and self.one_in(20):
                return self.both(noun, self.another(frame.objects[0], [noun]))
            if not verb.flags & {"vague", "give", "lay"}:
                return self.rich_nominal(noun, "object", verb)
        return self.nominal(noun, _object_role(verb, noun, negated), verb)

    def both(self, first: Noun, second: Noun) -> Both:
        """Two objects; if the first has no article the other has none, where it can: `bread and apples`."""
        one = self.nominal(first, "object")
        if one.determiner.lemma or second.person or second.animal:
            return Both(one, self.nominal(second, "together"))
        return Both(one, Nominal(one.determiner, second, not second.mass))

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

    def surroundings(self, frame: Frame, subject: Subject, object_: Object) -> Place | None:
        """Where it is done, or with whom, or neither."""
        if "lay" in frame.verb.flags:
            return self.place(frame.spots)
        if not frame.spots or not self.one_in(8):
            return None
        if frame.human and "along" in frame.verb.flags and self.one_in(3):
            friend = self.another(frame.subjects, (*_nouns(subject), *_nouns(object_)))
            company = self.words.prepositions[self.pick(("with", "with", "without"))]
            return Place(company, self.nominal(friend, "topic"))
        return self.place(frame.spots)

    def recipient(self, frame: Frame, subject: Subject) -> Nominal | None:
        flags = frame.verb.flags
        if "give" not in flags or ("maybe" in flags and self.one_in(3)):
            return None
        return self.nominal(self.another(frame.subjects, _nouns(subject)), "subject")

    def tense(self, verb: Verb, person: int, *, supported: bool) -> Tense:
        """A tense whose English form tells it: never `i read`, which may be now or then."""
        tense = self.pick(verb.tenses)
        if verb.past_like_base and not supported and person != THIRD:
            return "progressive"
        return tense

    def action(
        self,
        frame: Frame,
        *,
        rich: bool = True,
        asked: bool = False,
        named: bool = False,
        tense: Tense | None = None,
    ) -> tuple[Subject, Action]:
        """A whole event: who does what to whom, and where."""
        # After `do not` even `read` tells its tense, so these verbs are negated more often.
        negated = self.one_in(10 if asked else 2 if frame.verb.past_like_base else 6)
        object_ = self.object(frame, negated=negated, rich=rich)
        role = "subject" if rich and not negated else "topic"  # `each boy does not` would be `no boy does`
        subject = self.subject(frame, object_, rich=rich, role=role, named=named)
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
        tense = tense or self.tense(frame.verb, person_of(subject), supported=negated or asked)
        habit = tense == "present" and "state" not in frame.verb.flags
        adverb = None
        if habit and not negated and not asked and self.one_in(6):
            adverb = self.pick(self.words.any_adverb)
        recipient = self.recipient(frame, subject)
        place = self.surroundings(frame, subject, object_)
        return Action(frame.verb, tense, negated, object_, recipient, place, adverb)

    def time(self, action: Action, *, often: int = 9) -> AlignedPhrase | None:
        """A time that fits the tense, or none: `every day` suits neither `never` nor `not`."""
        if "state" in action.verb.flags or action.adverb is not None or not self.one_in(often):
            return None
        if action.negated and action.tense == "present":
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


def _object_role(verb: Verb, noun: Noun, negated: bool) -> str:
    if "new" in verb.flags:
        return "none" if negated else "new"
    if verb.preposition is not None and not noun.person:
        return "topic" if negated else "reached"
    return "negated" if negated else "object"


def _nouns(phrase: Subject | Object) -> tuple[Noun, ...]:
    return tuple([nominal.noun for nominal in nominals_of(phrase)])


def _distinct(one: Pronoun, other: Pronoun) -> bool:
    """`i see you`, `he sees her`, but not `i see me` nor `i see us`."""
    if one is other:
        return False
    return not {one.person, other.person} <= {FIRST, WE}
