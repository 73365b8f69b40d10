"""Build the dictionary from its tables, once, at first use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain

from regard.synthetic.translation import english, spanish, verbs, vocabulary
from regard.synthetic.translation import function_words as small_words
from regard.synthetic.translation.aligned_phrases import AlignedPhrase, aligned_phrase
from regard.synthetic.translation.frames import read_frames
from regard.synthetic.translation.groups import members, read_spots
from regard.synthetic.translation.lexicon import (
    Adjective,
    Description,
    Determiner,
    Frame,
    Noun,
    Pronoun,
    reserved,
)

_ODD_WITH_KIN = ("a", "this", "that", "each")  # an aunt is somebody's, and known
Choices = tuple[tuple[Determiner, bool], ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Every word, by its English lemma; `frames` groups the frames of one verb."""

    nouns: Mapping[str, Noun]
    adjectives: Mapping[str, Adjective]
    determiners: Mapping[str, Determiner]
    pronouns: Mapping[str, Pronoun]
    prepositions: Mapping[str, AlignedPhrase]
    adverbs: Mapping[str, AlignedPhrase]
    question_words: Mapping[str, AlignedPhrase]
    conjunctions: Mapping[str, AlignedPhrase]
    times: Mapping[str, tuple[AlignedPhrase, ...]]  # by tense
    any_pronoun: tuple[Pronoun, ...]  # repeated by frequency
    asked_pronoun: tuple[Pronoun, ...]
    any_adverb: tuple[AlignedPhrase, ...]
    located: tuple[Noun, ...]  # the nouns that have a place to be
    strangers: tuple[Noun, ...]  # those of them that may be new to the listener: `there is a cat`
    descriptions: tuple[Description, ...]
    frames: tuple[tuple[Frame, ...], ...]
    reasons: tuple[tuple[tuple[Frame, ...], bool, tuple[Adjective, ...]], ...]


@cache
def dictionary() -> Dictionary:
    """The one dictionary; the first call takes a few hundredths of a second."""
    determiners = _determiners()
    nouns = _nouns(determiners)
    adjectives = {row[0]: _adjective(row[0], row[1], row[2]) for row in vocabulary.ADJECTIVES}
    prepositions = _pieces(small_words.PREPOSITIONS)
    located = _locate(nouns, prepositions)
    descriptions = _describe(nouns, adjectives)
    frames = tuple(read_frames(row, nouns, prepositions) for row in verbs.VERBS)
    for noun in nouns.values():
        noun.sayings = _sayings(noun)
    pronouns = {row[0]: _pronoun(*row) for row in small_words.PRONOUNS}
    adverbs = _pieces(small_words.ADVERBS)
    return Dictionary(
        nouns=nouns,
        adjectives=adjectives,
        determiners=determiners,
        pronouns=pronouns,
        prepositions=prepositions,
        adverbs=adverbs,
        question_words=_pieces(small_words.QUESTION_WORDS),
        conjunctions=_pieces(small_words.CONJUNCTIONS),
        times=_times(),
        any_pronoun=tuple(pronouns[name] for name in small_words.PRONOUNS_DRAWN),
        asked_pronoun=tuple(pronouns[name] for name in small_words.PRONOUNS_DRAWN if name != "i"),
        any_adverb=tuple(adverbs.values()),
        located=located,
        strangers=tuple(noun for noun in located if noun.lemma not in members("kin")),
        descriptions=descriptions,
        frames=frames,
        reasons=_reasons(frames, adjectives),
    )


def _pieces(rows: Iterable[tuple[str, str, str]]) -> dict[str, AlignedPhrase]:
    return {source: aligned_phrase(source, target, links) for source, target, links in rows}


def _times() -> dict[str, tuple[AlignedPhrase, ...]]:
    tenses = dict.fromkeys(row[0] for row in small_words.TIMES)
    return {tense: tuple(aligned_phrase(*row[1:]) for row in small_words.TIMES if row[0] == tense) for tense in tenses}


def _determiners() -> dict[str, Determiner]:
    found = {}
    for singular, plural, forms in small_words.DETERMINERS:
        lemma = plural if singular == "-" else singular
        words = (tuple(singular.split()), tuple(plural.split()))
        columns = tuple(() if form == "-" else (form,) for form in forms.split())
        found[lemma] = Determiner(lemma, words, columns, lemma in ("the", "a"))
    return found


def _pronoun(subject: str, object_: str, clitic: str, person: int, plural: bool, feminine: bool) -> Pronoun:
    return Pronoun(aligned_phrase(subject, ""), aligned_phrase(object_, clitic), person, 2 * plural + feminine)


def _adjective(lemma: str, masculine: str, copula: str) -> Adjective:
    forms = (masculine,) * 4 if copula == "tener" else spanish.adjective(masculine)
    return Adjective(lemma, copula, tuple(aligned_phrase(lemma, form) for form in forms))


def _nouns(determiners: Mapping[str, Determiner]) -> dict[str, Noun]:
    people, animals = members("people"), members("animals")
    found = {}
    for lemma, entry in chain.from_iterable(group.items() for group in vocabulary.NOUNS.values()):
        word, gender = entry.split()
        found[lemma] = Noun(
            lemma,
            (lemma, english.plural(lemma)),
            (word, spanish.plural(word)),
            feminine=gender[0] == "f",
            stressed_a=gender == "fa",
            person=lemma in people,
            animal=lemma in animals,
            mass=lemma in members("mass"),
            determiners={role: _determined(lemma, role, determiners) for role in small_words.ROLES},
        )
    return found


def _determined(lemma: str, role: str, determiners: Mapping[str, Determiner]) -> Choices:
    """The choices of (determiner, plural) for a noun in a role, repeated by weight."""
    weights = small_words.ROLES[role]
    if lemma in members("mass"):
        weights = small_words.MASS_ROLES.get(role, small_words.MASS_ROLES["object"])
    kin, alive = lemma in members("kin"), lemma in members("people animals")
    choices: list[tuple[Determiner, bool]] = []
    for name, (singular, plural) in weights.items():
        names = [name]
        if name == "own":
            names = [*small_words.POSSESSIVES] if lemma in members("owned") else []
            plural = 0 if lemma in members("only") else plural  # nobody says `my mothers`
        elif (kin and name in _ODD_WITH_KIN and role != "new") or (alive and not name and role != "none"):
            # `sees boys` leaves open whether Spanish takes its personal a.
            continue
        choices += [(determiners[each], False) for each in names] * singular
        choices += [(determiners[each], True) for each in names] * plural
    return tuple(choices)


def _describe(nouns: Mapping[str, Noun], adjectives: Mapping[str, Adjective]) -> tuple[Description, ...]:
    found = []
    for lemma, _, copula, fits in vocabulary.ADJECTIVES:
        kept: tuple[list[Noun], list[Noun]] = ([], [])
        for name in members(fits):
            noun, side = nouns[name], reserved(lemma, name)
            kept[side].append(noun)
            noun.states[side].append(adjectives[lemma])
            if copula != "tener":
                noun.attributes[side].append(adjectives[lemma])
        found.append(Description(adjectives[lemma], kept, any(noun.person for noun in kept[0])))
    return tuple(found)


def _locate(nouns: Mapping[str, Noun], prepositions: Mapping[str, AlignedPhrase]) -> tuple[Noun, ...]:
    for names, wholes in verbs.PARTS:
        for name in members(names):
            nouns[name].wholes = tuple(nouns[whole] for whole in members(wholes))
    for names, spots in verbs.WHEREABOUTS:
        for name in members(names):
            nouns[name].spots = read_spots(spots, nouns, prepositions)
    return tuple(noun for noun in nouns.values() if noun.spots)


def _sayings(noun: Noun) -> tuple[str, ...]:
    acts, undergoes = ("does",) * 2 * bool(noun.acts), ("undergoes",) * 2 * bool(noun.undergoes[0])
    return (*acts, *undergoes, *("is",) * bool(noun.states[0]), *("lies",) * bool(noun.spots))


def _reasons(
    frames: Iterable[Iterable[Frame]], adjectives: Mapping[str, Adjective]
) -> tuple[tuple[tuple[Frame, ...], bool, tuple[Adjective, ...]], ...]:
    found = []
    for names, negated, feelings in verbs.REASONS:
        known = [frame for frame in chain.from_iterable(frames) if frame.human]
        able = tuple(frame for frame in known if frame.verb.lemma in names.split())
        found.append((able, negated, tuple(adjectives[feeling] for feeling in feelings.split())))
    return tuple(found)
