"""Writes a plan in both languages at once, with the links between their words.

The rules held throughout:
- Spanish drops subject pronouns; the English pronoun then links possibly to the verb that carries the person.
- `do`, `does` and `did` link possibly to the verb.
- A recipient is doubled: `le da el libro a la mujer`. Object pronouns stand before the finite verb.
- A question puts the subject after the finite verb (`¿está el niño comiendo pan?`), and after the whole verb
  when a question word or an object pronoun comes first (`¿qué está comiendo el niño?`, `¿me está ayudando el
  niño?`). A predicate adjective comes before the subject (`¿está cansado el niño?`).
"""

from regard.worlds.english import BE, DO, THEY, THIRD
from regard.worlds.lexicon import Pronoun
from regard.worlds.nominals import column, person, write_nominal, write_object
from regard.worlds.pieces import NOTHING, Piece, chain, introduce, join, piece
from regard.worlds.plans import (
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
from regard.worlds.spanish import present

_BE = {verb: tuple(map(piece, BE, present(verb))) for verb in ("ser", "estar", "tener")}
_DO = tuple(piece(word, "") for word in DO)
_DID = piece("did", "")
_NOT = piece("not", "no")
_TO = piece("to", "a")
_LE, _LES = piece("", "le"), piece("", "les")
_AND, _AND_BEFORE_I = piece("and", "y"), piece("and", "e")
_WHO_ASKED = piece("who", "quién")
_WHO, _THAT = piece("who", "que"), piece("that", "que")
_WHOM = (
    piece("whom", "al que", "0-1 0~0"),
    piece("whom", "a la que", "0-2 0~0 0~1"),
    piece("whom", "a los que", "0-2 0~0 0~1"),
    piece("whom", "a las que", "0-2 0~0 0~1"),
)
_THERE = (piece("there is", "hay", "1-0 0~0"), piece("there are", "hay", "1-0 0~0"))
_IS_THERE = (piece("is there", "hay", "0-0 1~0"), piece("are there", "hay", "0-0 1~0"))
_OPENING, _CLOSING = piece("", "¿"), piece("?", "?")


def write(plan: Plan) -> Piece:
    """The sentence in both languages."""
    if isinstance(plan, Clause):
        return _clause(plan)
    if isinstance(plan, Question):
        return _marked(_clause(plan.clause) if isinstance(plan.clause.subject, Who) else _question(plan))
    if isinstance(plan, Existence):
        return _existence(plan)
    return _compound(plan)


def _clause(clause: Clause, *, silent: bool = False) -> Piece:
    subject, person_, form = _subject(clause.subject)
    said = _say(clause.predicate, NOTHING if silent else subject, person_, form)
    if clause.time is None:
        return said
    return chain([clause.time, said] if clause.time_first else [said, clause.time])


def _compound(plan: Compound) -> Piece:
    second = _clause(plan.second, silent=plan.shared)
    return chain([_clause(plan.first), _and(plan.conjunction, second), second])


def _and(conjunction: Piece, following: Piece) -> Piece:
    """The conjunction itself, but `e` for `y` before the sound i: `canta e invita`."""
    if conjunction.target[0] == "y" and following.target[0].startswith(("i", "hi")):
        return _AND_BEFORE_I
    return conjunction


def _existence(plan: Existence) -> Piece:
    begin = (_IS_THERE if plan.asked else _THERE)[plan.nominal.plural]
    said = chain([begin, write_nominal(plan.nominal), _place(plan.place)])
    return _marked(said) if plan.asked else said


def _marked(said: Piece) -> Piece:
    return join([said, _CLOSING], [_OPENING, said, _CLOSING], [(_CLOSING, _OPENING)])


def _subject(subject: Subject) -> tuple[Piece, int, int]:
    """The words of a subject, its person, and the column of its number and gender."""
    if isinstance(subject, Nominal):
        return _whole(subject, write_nominal(subject)), person(subject), column(subject)
    if isinstance(subject, Pronoun):
        return subject.subject, subject.person, subject.column
    if isinstance(subject, Who):
        return _WHO_ASKED, THIRD, 0
    first, second = subject
    second_words = write_nominal(second)
    words = chain([write_nominal(first), _and(_AND, second_words), second_words])
    # One man among them makes the whole masculine.
    return words, THEY, 2 + (first.noun.feminine and second.noun.feminine)


def _whole(nominal: Nominal, words: Piece) -> Piece:
    return words if nominal.relative is None else chain([words, _relative(nominal)])


def _relative(nominal: Nominal) -> Piece:
    assert nominal.relative is not None
    predicate, subject = nominal.relative
    if subject is None:
        opening = _WHO if nominal.noun.person else _THAT
        return _say(predicate, opening, person(nominal), column(nominal))
    opening = _WHOM[column(nominal)] if nominal.noun.person else _THAT
    return chain([opening, _say(predicate, *_subject(subject))])


def _place(place: Place) -> Piece:
    return introduce(place.preposition, write_nominal(place.nominal))


def _say(predicate: Predicate, subject: Piece, person_: int, form: int) -> Piece:
    """A statement, a relative clause, or a question about the subject: the subject comes first."""
    if isinstance(predicate, Action):
        return _say_action(predicate, subject, person_)
    if isinstance(predicate, State):
        verb, last = _BE[predicate.adjective.copula][person_], predicate.adjective.forms[form]
        middle = [_NOT] if predicate.negated else [predicate.adverb] if predicate.adverb else []
    else:
        assert predicate.place is not None
        verb, last = _BE["estar"][person_], _place(predicate.place)
        middle = [_NOT] if predicate.negated else []
    return join([subject, verb, *middle, last], [subject, *middle, verb, last], _dropped(subject, verb))


def _say_action(action: Action, subject: Piece, person_: int) -> Piece:
    auxiliary, finite, gerund = _verb(action, person_, supported=action.negated)
    middle = [_NOT] if action.negated else [action.adverb] if action.adverb else []
    before, english, spanish, loose = _complements(action)
    loose += _dropped(subject, finite)
    if gerund is not None:
        source = [subject, finite, *middle, gerund, *english]
        return join(source, [subject, *middle, *before, finite, gerund, *spanish], loose)
    if auxiliary is not None:
        source = [subject, auxiliary, *middle, finite, *english]
        loose.append((auxiliary, finite))
    else:
        source = [subject, *middle, finite, *english]
    return join(source, [subject, *middle, *before, finite, *spanish], loose)


def _question(plan: Question) -> Piece:
    clause = plan.clause
    subject, person_, form = _subject(clause.subject)
    word = write_nominal(plan.word) if isinstance(plan.word, Nominal) else plan.word
    if isinstance(clause.predicate, Action):
        asked = _ask_action(clause.predicate, subject, person_, behind=word is not None)
    else:
        asked = _ask_being(clause.predicate, subject, person_, form)
    parts = [part for part in (word, asked, clause.time) if part is not None]
    return chain(parts)


def _ask_being(predicate: State | Location, subject: Piece, person_: int, form: int) -> Piece:
    if isinstance(predicate, State):
        verb, adjective = _BE[predicate.adjective.copula][person_], predicate.adjective.forms[form]
        return join([verb, subject, adjective], [verb, adjective, subject], _dropped(subject, verb))
    verb = _BE["estar"][person_]
    parts = [verb, subject] if predicate.place is None else [verb, subject, _place(predicate.place)]
    return join(parts, parts, _dropped(subject, verb))


def _ask_action(action: Action, subject: Piece, person_: int, *, behind: bool) -> Piece:
    """A question about an action; `behind` puts the subject after the whole verb."""
    auxiliary, finite, gerund = _verb(action, person_, supported=True)
    middle = [_NOT] if action.negated else []
    before, english, spanish, loose = _complements(action)
    loose += _dropped(subject, finite)
    if gerund is not None:
        source = [finite, subject, *middle, gerund, *english]
        verb = [finite, gerund, subject] if behind or before else [finite, subject, gerund]
    else:
        assert auxiliary is not None
        source = [auxiliary, subject, *middle, finite, *english]
        verb = [finite, subject]
        loose.append((auxiliary, finite))
    return join(source, [*middle, *before, *verb, *spanish], loose)


def _verb(action: Action, person_: int, *, supported: bool) -> tuple[Piece | None, Piece, Piece | None]:
    """The auxiliary do, the finite verb and the gerund; `supported` asks for do where English needs it."""
    verb, tense = action.verb, action.tense
    if tense == "progressive":
        return None, _BE["estar"][person_], verb.gerund
    if tense == "present":
        return (_DO[person_], verb.base_present[person_], None) if supported else (None, verb.present[person_], None)
    return (_DID, verb.base_past[person_], None) if supported else (None, verb.past[person_], None)


def _complements(action: Action) -> tuple[list[Piece], list[Piece], list[Piece], list[tuple[Piece, Piece]]]:
    """What stands before the Spanish verb, after the English one, after the Spanish one, and loose links."""
    before: list[Piece] = []
    loose: list[tuple[Piece, Piece]] = []
    after: list[Piece] = []
    english = after
    if isinstance(action.object, Pronoun):
        before.append(action.object.object)
        english = [action.object.object]
    elif action.object is not None:
        after.append(_object(action, action.object))
    if action.recipient is not None:
        recipient = introduce(_TO, write_nominal(action.recipient))
        after.append(recipient)
        before.append(_LES if action.recipient.plural else _LE)
        loose.append((recipient, before[-1]))
    if action.place is not None:
        after.append(_place(action.place))
    return before, english if english is after else [*english, *after], after, loose


def _object(action: Action, object_: Nominal | Both) -> Piece:
    if isinstance(object_, Nominal):
        return _whole(object_, write_object(action.verb, object_))
    second = write_object(action.verb, object_.second)
    return chain([write_object(action.verb, object_.first), _and(_AND, second), second])


def _dropped(subject: Piece, verb: Piece) -> list[tuple[Piece, Piece]]:
    """The loose link of a pronoun that Spanish drops."""
    return [(subject, verb)] if subject.source and not subject.target else []
