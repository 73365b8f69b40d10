"""Builds the words of the world from their tables, once, at first use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain

from regard.worlds import english, spanish, verbs, vocabulary
from regard.worlds.lexicon import (
    Adjective,
    Description,
    Determiner,
    Frame,
    Noun,
    Pronoun,
    Spot,
    Tense,
    Verb,
    reserved,
)
from regard.worlds.pieces import Piece, piece

_TENSES: dict[str, tuple[Tense, ...]] = {
    "all": ("present", "progressive", "past"),
    "simple": ("present", "past"),
    "state": ("present",),
}


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Every word of the world, by its English lemma; `frames` groups the frames of one verb."""

    nouns: Mapping[str, Noun]
    adjectives: Mapping[str, Adjective]
    determiners: Mapping[str, Determiner]
    pronouns: Mapping[str, Pronoun]
    prepositions: Mapping[str, Piece]
    adverbs: Mapping[str, Piece]
    question_words: Mapping[str, Piece]
    conjunctions: Mapping[str, Piece]
    times: Mapping[str, tuple[Piece, ...]]
    descriptions: tuple[Description, ...]
    frames: tuple[tuple[Frame, ...], ...]


@cache
def dictionary() -> Dictionary:
    """The one dictionary; takes a few milliseconds the first time."""
    determiners = _determiners()
    nouns = _nouns(determiners)
    adjectives = {row[0]: _adjective(row[0], row[1], row[2]) for row in vocabulary.ADJECTIVES}
    prepositions = _pieces(vocabulary.PREPOSITIONS)
    _locate(nouns, prepositions)
    return Dictionary(
        nouns,
        adjectives,
        determiners,
        {row[0]: _pronoun(*row) for row in vocabulary.PRONOUNS},
        prepositions,
        _pieces(vocabulary.ADVERBS),
        _pieces(vocabulary.QUESTION_WORDS),
        _pieces(vocabulary.CONJUNCTIONS),
        _times(),
        _describe(nouns, adjectives),
        tuple(_frames(row, nouns, prepositions) for row in verbs.VERBS),
    )


def members(names: str) -> list[str]:
    """The nouns of a list of groups and nouns, each once, in order."""
    found: dict[str, None] = {}
    for name in names.replace("+", " ").split():
        if name in vocabulary.GROUPS:
            found |= dict.fromkeys(members(vocabulary.GROUPS[name]))
        else:
            found |= dict.fromkeys(vocabulary.NOUNS.get(name, [name]))
    return list(found)


def _pieces(rows: Iterable[tuple[str, str, str]]) -> dict[str, Piece]:
    return {source: piece(source, target, links) for source, target, links in rows}


def _times() -> dict[str, tuple[Piece, ...]]:
    tenses = dict.fromkeys(row[0] for row in vocabulary.TIMES)
    return {tense: tuple(piece(*row[1:]) for row in vocabulary.TIMES if row[0] == tense) for tense in tenses}


def _determiners() -> dict[str, Determiner]:
    found = {}
    for singular, plural, forms, definite in vocabulary.DETERMINERS:
        lemma = plural if singular == "-" else singular
        words = (tuple(singular.split()), tuple(plural.split()))
        columns = tuple(() if form == "-" else (form,) for form in forms.split())
        found[lemma] = Determiner(lemma, words, columns, definite, lemma in ("the", "a"))
    return found


def _pronoun(subject: str, object_: str, clitic: str, person: int, plural: bool, feminine: bool) -> Pronoun:
    return Pronoun(piece(subject, ""), piece(object_, clitic), person, 2 * plural + feminine)


def _adjective(lemma: str, masculine: str, copula: str) -> Adjective:
    forms = (masculine,) * 4 if copula == "tener" else spanish.adjective(masculine)
    return Adjective(lemma, copula, tuple(piece(lemma, form) for form in forms))


def _nouns(determiners: Mapping[str, Determiner]) -> dict[str, Noun]:
    mass, owned = set(members("mass")), set(members("owned"))
    people, animals = set(members("people")), set(members("animals"))
    found = {}
    for lemma, entry in chain.from_iterable(group.items() for group in vocabulary.NOUNS.values()):
        word, gender = entry.split()
        alive = lemma in people or lemma in animals
        found[lemma] = Noun(
            lemma,
            (lemma, english.plural(lemma)),
            (word, spanish.plural(word)),
            feminine=gender[0] == "f",
            stressed_a=gender == "fa",
            person=lemma in people,
            animal=lemma in animals,
            determiners={
                role: _weighted(_weights(role, lemma in mass, alive), determiners, lemma in owned)
                for role in vocabulary.ROLES
            },
        )
    return found


def _weights(role: str, mass: bool, alive: bool) -> Mapping[str, tuple[int, int]]:
    if mass:
        return vocabulary.MASS_ROLES.get(role, vocabulary.MASS_ROLES["object"])
    weights = vocabulary.ROLES[role]
    if alive and role != "none":  # `sees boys`: whether Spanish takes its personal a is not settled there
        return {name: weight for name, weight in weights.items() if name}
    return weights


def _weighted(
    weights: Mapping[str, tuple[int, int]], determiners: Mapping[str, Determiner], owned: bool
) -> tuple[tuple[Determiner, bool], ...]:
    """The choices of (determiner, plural), each as often as its weight."""
    choices: list[tuple[Determiner, bool]] = []
    for name, (singular, plural) in weights.items():
        if name != "own":
            choices += [(determiners[name], False)] * singular + [(determiners[name], True)] * plural
        elif owned:
            choices += [(determiners[each], False) for each in vocabulary.POSSESSIVES] * singular
            choices += [(determiners[each], True) for each in vocabulary.POSSESSIVES] * plural
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


def _locate(nouns: Mapping[str, Noun], prepositions: Mapping[str, Piece]) -> None:
    for names, spots in verbs.WHEREABOUTS:
        for name in members(names):
            nouns[name].spots = _spots(spots, nouns, prepositions)
    for names, wholes in verbs.PARTS:
        for name in members(names):
            nouns[name].wholes = tuple(nouns[whole] for whole in members(wholes))


def _spots(text: str, nouns: Mapping[str, Noun], prepositions: Mapping[str, Piece]) -> tuple[Spot, ...]:
    found = []
    for part in text.split():
        name, places = part.split(":")
        preposition = prepositions[name.replace("_", " ")]
        found.append(Spot(preposition, tuple(nouns[place] for place in members(places))))
    return tuple(found)


def _verb(words: str, translation: str, mode: str) -> Verb:
    lemma, _, particle = words.partition(" ")
    infinitive, _, preposition = translation.partition(" ")
    after = f" {particle}" if particle and not preposition else ""
    links = "0-0 1~0" if after else "0-0"
    present, preterite = spanish.present(infinitive), spanish.preterite(infinitive)
    past = english.past(lemma)

    def forms(sources: Iterable[str], targets: Iterable[str]) -> tuple[Piece, ...]:
        pairs = zip(sources, targets, strict=True)
        return tuple(piece(source + after, target, links) for source, target in pairs)

    by_person = [english.third_person(lemma) if person == english.THIRD else lemma for person in range(5)]
    return Verb(
        words,
        frozenset(mode.split()),
        _TENSES[mode.split()[0]],
        piece(particle, preposition) if preposition else None,
        present=forms(by_person, present),
        past=forms([past] * 5, preterite),
        base_present=forms([lemma] * 5, present),
        base_past=forms([lemma] * 5, preterite),
        gerund=piece(english.gerund(lemma) + after, spanish.gerund(infinitive), links),
        past_like_base=past == lemma,
    )


def _frames(
    row: tuple[str, str, str, str], nouns: Mapping[str, Noun], prepositions: Mapping[str, Piece]
) -> tuple[Frame, ...]:
    words, translation, mode, texts = row
    verb = _verb(words, translation, mode)
    found = []
    for text in texts.split():
        roles, _, place = text.partition("@")
        subjects, _, objects = roles.partition(">")
        kept: tuple[list[Noun], list[Noun]] = ([], [])
        for name in members(objects):
            kept[reserved(words, name)].append(nouns[name])
        frame = Frame(
            verb,
            tuple(nouns[name] for name in members(subjects)),
            (tuple(kept[0]), tuple(kept[1])),
            _spots(verbs.PLACES.get(place or ("lay" if "lay" in mode else ""), ""), nouns, prepositions),
            nouns[members(subjects)[0]].person,
            (_lifeless(kept[0]), _lifeless(kept[1])),
            _question_words(kept[0]) if verb.preposition is None else (),
        )
        found.append(frame)
        _register(frame)
    return tuple(found)


def _lifeless(nouns: Iterable[Noun]) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns if not noun.person and not noun.animal)


def _question_words(objects: list[Noun]) -> tuple[str, ...]:
    who = any(noun.person for noun in objects)
    return ("what",) * bool(_lifeless(objects)) + ("who",) * who


def _register(frame: Frame) -> None:
    """Let each noun find the frames it acts in and those it undergoes."""
    for noun in frame.subjects:
        noun.acts.append(frame)
    if frame.verb.preposition is None and not frame.verb.flags & {"give", "lay", "new"}:
        for kept, objects in enumerate(frame.objects):
            for noun in objects:
                noun.undergoes[kept].append(frame)
