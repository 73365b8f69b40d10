"""Writes nouns with their articles, adjectives and prepositions."""

from regard.worlds.english import THEY, THIRD, article
from regard.worlds.lexicon import Verb
from regard.worlds.pieces import Link, Piece, chain, introduce, piece
from regard.worlds.plans import Nominal

_PERSONAL_A = piece("", "a")
_OF = piece("of", "de")


def person(nominal: Nominal) -> int:
    """The person its verb takes, as an index of the tables of persons."""
    return THEY if nominal.plural else THIRD


def column(nominal: Nominal) -> int:
    """Its number and gender, as an index of the four forms of an adjective."""
    return 2 * nominal.plural + nominal.noun.feminine


def write_nominal(nominal: Nominal) -> Piece:
    """A noun with its determiner, adjective and `of`, but not yet its relative clause."""
    determiner, noun, plural, adjective, of, _ = nominal
    form = column(nominal)
    # el agua, un aula: the article before a stressed a looks masculine, the noun stays feminine.
    looks = 0 if determiner.article and noun.stressed_a and not plural else form
    source = [*determiner.english[plural]]
    target = [*determiner.spanish[looks]]
    at, to = len(source), len(target)
    sure: list[Link] = [(i, 0) for i in range(at)]
    target.append(noun.spanish[plural])
    if adjective is not None:
        source.append(adjective.lemma)
        target += adjective.forms[form].target
        sure.append((at, to + 1))
        at += 1
    source.append(noun.english[plural])
    sure.append((at, to))
    if source[0] == "a":
        source[0] = article(source[1])
    phrase = Piece(source, target, sure, (), at)
    if of is None:
        return phrase
    return chain([phrase, introduce(_OF, write_nominal(of))])._replace(head=at)


def write_object(verb: Verb, nominal: Nominal) -> Piece:
    """An object with the preposition its verb takes, or the personal `a`.

    The personal `a` stands before people, and before animals that are definite: `ve al perro`, `ve un perro`.
    """
    phrase = write_nominal(nominal)
    if verb.preposition is not None:
        return introduce(verb.preposition, phrase)
    noun = nominal.noun
    alive = noun.person or (noun.animal and nominal.determiner.definite)
    return introduce(_PERSONAL_A, phrase) if alive and "plain" not in verb.flags else phrase
