"""Write a plan in both languages at once, with the links between their words.

The rules held throughout:
- Spanish drops subject pronouns; the English pronoun then links possibly to the verb that carries the person.
- `do`, `does` and `did` link possibly to the verb.
- A recipient is doubled: `le da el libro a la mujer`. Object pronouns stand before the finite verb.
- A question puts the subject after the finite verb (`¿está el niño comiendo pan?`), and after the whole verb
  when a question word or an object pronoun comes first (`¿qué está comiendo el niño?`, `¿me está ayudando el
  niño?`). A predicate adjective comes before the subject (`¿está cansado el niño?`).
"""

from collections.abc import Sequence

from regard.synthetic.translation.aligned_phrases import (
    EMPTY,
    LINK_BASE,
    AlignedPhrase,
    aligned_phrase,
    arrange,
    concatenate,
)
from regard.synthetic.translation.english import BE, DO, THEY, THIRD
from regard.synthetic.translation.lexicon import Pronoun
from regard.synthetic.translation.nominals import column, person, write_introduced, write_nominal, write_object
from regard.synthetic.translation.plans import (
    Action,
    Both,
    Clause,
    Compound,
    Existence,
    Location,
    Nominal,
    Place,
    Plan,
    Predicate,
    Question,
    State,
    Subject,
    Who,
)
from regard.synthetic.translation.spanish import present

_BE = {verb: tuple(map(aligned_phrase, BE, present(verb))) for verb in ("ser", "estar", "tener")}
_DO = tuple(aligned_phrase(word, "") for word in DO)
_DID = aligned_phrase("did", "")
_NOT = aligned_phrase("not", "no")
_TO = aligned_phrase("to", "a")
_LE, _LES = aligned_phrase("", "le"), aligned_phrase("", "les")
_AND, _AND_BEFORE_I = aligned_phrase("and", "y"), aligned_phrase("and", "e")
_WHO_ASKED = aligned_phrase("who", "quién")
_WHO, _THAT = aligned_phrase("who", "que"), aligned_phrase("that", "que")
_WHOM = (
    aligned_phrase("whom", "al que", "0-1 0~0"),
    aligned_phrase("whom", "a la que", "0-2 0~0 0~1"),
    aligned_phrase("whom", "a los que", "0-2 0~0 0~1"),
    aligned_phrase("whom", "a las que", "0-2 0~0 0~1"),
)
_THERE = (aligned_phrase("there is", "hay", "1-0 0~0"), aligned_phrase("there are", "hay", "1-0 0~0"))
_IS_THERE = (aligned_phrase("is there", "hay", "0-0 1~0"), aligned_phrase("are there", "hay", "0-0 1~0"))

# The parts of a clause, and the orders in which the two languages take them.
_DOUBLE, _SUBJECT, _AUXILIARY, _MIDDLE, _FINITE, _GERUND, _PRONOUN, *_REST = range(10)
_OBJECT, _RECIPIENT, _PLACE = _REST
_AFTER = (_PRONOUN, _OBJECT, _RECIPIENT, _PLACE)
_BEFORE = (_MIDDLE, _DOUBLE, _PRONOUN, _FINITE)
_ENGLISH = (_SUBJECT, _AUXILIARY, _MIDDLE, _FINITE, *_AFTER)
_ENGLISH_PROGRESSIVE = (_SUBJECT, _FINITE, _MIDDLE, _GERUND, *_AFTER)
_ENGLISH_ASKED = (_AUXILIARY, _SUBJECT, _MIDDLE, _FINITE, *_AFTER)
_ENGLISH_ASKED_PROGRESSIVE = (_FINITE, _SUBJECT, _MIDDLE, _GERUND, *_AFTER)
_SPANISH = (_SUBJECT, *_BEFORE, _GERUND, *_REST)
_SPANISH_ASKED = (*_BEFORE, _SUBJECT, _GERUND, *_REST)
_SPANISH_ASKED_BEHIND = (*_BEFORE, _GERUND, _SUBJECT, *_REST)
_SPANISH_ASKED_STATE = (_FINITE, _OBJECT, _SUBJECT)


def write(plan: Plan) -> AlignedPhrase:
    """The sentence in both languages."""
    if isinstance(plan, Clause):
        return _clause(plan)
    if isinstance(plan, Question):
        return _marked(_clause(plan.clause) if isinstance(plan.clause.subject, Who) else _question(plan))
    if isinstance(plan, Existence):
        return _existence(plan)
    return _compound(plan)


def _clause(clause: Clause, *, silent: bool = False) -> AlignedPhrase:
    subject, person_, form = _subject(clause.subject)
    said = _say(clause.predicate, EMPTY if silent else subject, person_, form)
    if clause.time is None:
        return said
    return concatenate(clause.time, said) if clause.time_first else concatenate(said, clause.time)


def _compound(plan: Compound) -> AlignedPhrase:
    second = _clause(plan.second, silent=plan.shared)
    return concatenate(_clause(plan.first), _and(plan.conjunction, second), second)


def _and(conjunction: AlignedPhrase, following: AlignedPhrase) -> AlignedPhrase:
    """The conjunction itself, but `e` for `y` before the sound i: `canta e invita`."""
    if conjunction.target[0] == "y" and following.target[0].startswith(("i", "hi")):
        return _AND_BEFORE_I
    return conjunction


def _existence(plan: Existence) -> AlignedPhrase:
    begin = (_IS_THERE if plan.asked else _THERE)[plan.nominal.plural]
    said = concatenate(begin, write_nominal(plan.nominal), _place(plan.place))
    return _marked(said) if plan.asked else said


def _marked(said: AlignedPhrase) -> AlignedPhrase:
    """A sentence between question marks; `?` is surely `?`, and possibly `¿`."""
    end = len(said.source) * LINK_BASE
    sure = [*[link + 1 for link in said.sure], end + len(said.target) + 1]
    possible = [*[link + 1 for link in said.possible], end]
    return AlignedPhrase([*said.source, "?"], ["¿", *said.target, "?"], sure, possible)


def _subject(subject: Subject) -> tuple[AlignedPhrase, int, int]:
    """The words of a subject, its person, and the column of its number and gender."""
    if isinstance(subject, Pronoun):
        return subject.subject, subject.person, subject.column
    if isinstance(subject, Nominal):
        return _whole(subject, write_nominal(subject)), person(subject), column(subject)
    if isinstance(subject, Who):
        return _WHO_ASKED, THIRD, 0
    first, second = subject
    second_words = write_nominal(second)
    words = concatenate(write_nominal(first), _and(_AND, second_words), second_words)
    # One man among them makes the whole masculine.
    return words, THEY, 2 + (first.noun.feminine and second.noun.feminine)


def _whole(nominal: Nominal, words: AlignedPhrase) -> AlignedPhrase:
    return words if nominal.relative is None else concatenate(words, _relative(nominal))


def _relative(nominal: Nominal) -> AlignedPhrase:
    assert nominal.relative is not None
    predicate, subject = nominal.relative
    if subject is None:
        opening = _WHO if nominal.noun.person else _THAT
        return _say(predicate, opening, person(nominal), column(nominal))
    opening = _WHOM[column(nominal)] if nominal.noun.person else _THAT
    return concatenate(opening, _say(predicate, *_subject(subject)))


def _place(place: Place) -> AlignedPhrase:
    return write_introduced(place.preposition, place.nominal)


def _say(predicate: Predicate, subject: AlignedPhrase, person_: int, form: int) -> AlignedPhrase:
    """A statement, a relative clause, or a question about the subject: the subject comes first."""
    if not isinstance(predicate, Action):
        parts = _being(predicate, subject, person_, form)
        return arrange(parts, _ENGLISH_PROGRESSIVE, _SPANISH, _loose(parts))
    parts = _action(predicate, subject, person_, supported=predicate.negated)
    progressive = predicate.tense == "progressive"
    return arrange(parts, _ENGLISH_PROGRESSIVE if progressive else _ENGLISH, _SPANISH, _loose(parts))


def _question(plan: Question) -> AlignedPhrase:
    clause, word = plan
    if isinstance(word, Nominal):
        word = write_nominal(word)
    asked = _ask(clause.predicate, *_subject(clause.subject), behind=word is not None)
    if word is None and clause.time is None:
        return asked
    return concatenate(word or EMPTY, asked, clause.time or EMPTY)


def _ask(predicate: Predicate, subject: AlignedPhrase, person_: int, form: int, *, behind: bool) -> AlignedPhrase:
    """A question that is not about the subject; `behind` puts the subject after the whole verb."""
    if not isinstance(predicate, Action):
        parts = _being(predicate, subject, person_, form)
        order = _SPANISH_ASKED_STATE if isinstance(predicate, State) else _SPANISH_ASKED
        return arrange(parts, _ENGLISH_ASKED_PROGRESSIVE, order, _loose(parts))
    parts = _action(predicate, subject, person_, supported=True)
    behind = behind or bool(parts[_PRONOUN].target) or bool(parts[_DOUBLE].target)
    progressive = predicate.tense == "progressive"
    return arrange(
        parts,
        _ENGLISH_ASKED_PROGRESSIVE if progressive else _ENGLISH_ASKED,
        _SPANISH_ASKED_BEHIND if behind else _SPANISH_ASKED,
        _loose(parts),
    )


def _being(predicate: State | Location, subject: AlignedPhrase, person_: int, form: int) -> list[AlignedPhrase]:
    """The parts of a clause with be; what is said of the subject takes the place of the object."""
    parts = [EMPTY] * 10
    parts[_SUBJECT] = subject
    if isinstance(predicate, State):
        parts[_FINITE] = _BE[predicate.adjective.copula][person_]
        parts[_OBJECT] = predicate.adjective.forms[form]
        parts[_MIDDLE] = _NOT if predicate.negated else predicate.adverb or EMPTY
    else:
        parts[_FINITE] = _BE["estar"][person_]
        parts[_OBJECT] = EMPTY if predicate.place is None else _place(predicate.place)
        parts[_MIDDLE] = _NOT if predicate.negated else EMPTY
    return parts


def _action(action: Action, subject: AlignedPhrase, person_: int, *, supported: bool) -> list[AlignedPhrase]:
    """The parts of a clause with another verb; `supported` asks for do where English needs it."""
    verb, tense, negated, object_, recipient, place, adverb = action
    parts = [EMPTY] * 10
    parts[_SUBJECT] = subject
    parts[_MIDDLE] = _NOT if negated else adverb or EMPTY
    if tense == "progressive":
        parts[_FINITE], parts[_GERUND] = _BE["estar"][person_], verb.gerund
    elif supported:
        past = tense == "past"
        parts[_AUXILIARY] = _DID if past else _DO[person_]
        parts[_FINITE] = (verb.base_past if past else verb.base_present)[person_]
    else:
        parts[_FINITE] = (verb.past if tense == "past" else verb.present)[person_]
    if isinstance(object_, Pronoun):
        parts[_PRONOUN] = object_.object
    elif object_ is not None:
        parts[_OBJECT] = _object(action, object_)
    if recipient is not None:
        parts[_RECIPIENT] = write_introduced(_TO, recipient)
        parts[_DOUBLE] = _LES if recipient.plural else _LE
    if place is not None:
        parts[_PLACE] = _place(place)
    return parts


def _object(action: Action, object_: Nominal | Both) -> AlignedPhrase:
    if isinstance(object_, Nominal):
        return _whole(object_, write_object(action.verb, object_))
    second = write_object(action.verb, object_.second)
    return concatenate(write_object(action.verb, object_.first), _and(_AND, second), second)


def _loose(parts: Sequence[AlignedPhrase]) -> list[tuple[int, int]]:
    """The possible links between parts: a dropped pronoun, do, and the doubled recipient."""
    found = []
    subject = parts[_SUBJECT]
    if subject.source and not subject.target:
        found.append((_SUBJECT, _FINITE))
    if parts[_AUXILIARY].source:
        found.append((_AUXILIARY, _FINITE))
    if parts[_DOUBLE].target:
        found.append((_RECIPIENT, _DOUBLE))
    return found
