"""Write nouns with their articles, adjectives and prepositions."""

from functools import cache

from regard.synthetic.translation.aligned_phrases import (
    LINK_BASE,
    AlignedPhrase,
    aligned_phrase,
    concatenate,
    prepend_preposition,
)
from regard.synthetic.translation.english import THEY, THIRD, article
from regard.synthetic.translation.lexicon import Adjective, Determiner, Noun, Pronoun, Verb
from regard.synthetic.translation.plans import Both, Nominal, Subject

_PERSONAL_A = aligned_phrase("", "a")
_OF = aligned_phrase("of", "de")


def person(nominal: Nominal) -> int:
    """The person its verb takes, as an index of the tables of persons."""
    return THEY if nominal.plural else THIRD


def person_of(subject: Subject) -> int:
    """The person the verb takes after any subject."""
    if isinstance(subject, Nominal):
        return person(subject)
    if isinstance(subject, Pronoun):
        return subject.person
    return THEY if isinstance(subject, Both) else THIRD


def column(nominal: Nominal) -> int:
    """Its number and gender, as an index of the four forms of an adjective."""
    return 2 * nominal.plural + nominal.noun.feminine


def write_nominal(nominal: Nominal) -> AlignedPhrase:
    """A noun with its determiner, adjective and `of`, but not yet its relative clause."""
    determiner, noun, plural, adjective, of, _ = nominal
    words = determiner, noun, plural
    phrase = _bare(*words) if adjective is None else _described(*words, adjective)
    if of is None:
        return phrase
    return concatenate(phrase, write_introduced(_OF, of))._replace(head=phrase.head)


def write_introduced(preposition: AlignedPhrase, nominal: Nominal) -> AlignedPhrase:
    """A preposition and a nominal, contracted where Spanish contracts: `del niño`."""
    determiner, noun, plural, adjective, of, _ = nominal
    if adjective is None and of is None:
        return _bare_introduced(preposition, determiner, noun, plural)
    return prepend_preposition(preposition, write_nominal(nominal))


@cache
def _bare_introduced(preposition: AlignedPhrase, determiner: Determiner, noun: Noun, plural: bool) -> AlignedPhrase:
    return prepend_preposition(preposition, _bare(determiner, noun, plural))


@cache
def _bare(determiner: Determiner, noun: Noun, plural: bool) -> AlignedPhrase:
    """A determiner and a noun; there are only a few thousand, so they are cached."""
    source = (*determiner.english[plural], noun.english[plural])
    if source[0] == "a":
        source = (article(source[1]), source[1])
    article_words = _determiner(determiner, noun, plural)
    head = len(source) - 1
    sure = (*(i * LINK_BASE for i in range(head)), head * LINK_BASE + len(article_words))
    return AlignedPhrase(source, (*article_words, noun.spanish[plural]), sure, (), head)


def _described(determiner: Determiner, noun: Noun, plural: bool, adjective: Adjective) -> AlignedPhrase:
    """English puts the adjective before the noun, Spanish after it."""
    source = [*determiner.english[plural], adjective.lemma, noun.english[plural]]
    if source[0] == "a":
        source[0] = article(adjective.lemma)
    target = [*_determiner(determiner, noun, plural), noun.spanish[plural]]
    target += adjective.forms[2 * plural + noun.feminine].target
    head, last = len(source) - 1, len(target) - 1
    sure = [(head - 1) * LINK_BASE + last, head * LINK_BASE + last - 1]
    sure += [i * LINK_BASE for i in range(head - 1)]
    return AlignedPhrase(source, target, sure, (), head)


def _determiner(determiner: Determiner, noun: Noun, plural: bool) -> tuple[str, ...]:
    # el agua, un aula: the article before a stressed a looks masculine, the noun stays feminine.
    if determiner.article and noun.stressed_a and not plural:
        return determiner.spanish[0]
    return determiner.spanish[2 * plural + noun.feminine]


def write_object(verb: Verb, nominal: Nominal) -> AlignedPhrase:
    """An object with the preposition its verb takes, or with the personal `a` before people and animals."""
    if verb.preposition is not None:
        return write_introduced(verb.preposition, nominal)
    noun = nominal.noun
    if (noun.person or noun.animal) and "plain" not in verb.flags:
        return write_introduced(_PERSONAL_A, nominal)
    return write_nominal(nominal)
