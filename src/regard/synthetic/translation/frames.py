"""Build verbs and their frames from the table of verbs."""

from collections.abc import Iterable, Mapping

from regard.synthetic.translation import english, spanish, verbs
from regard.synthetic.translation.aligned_phrases import AlignedPhrase, aligned_phrase
from regard.synthetic.translation.groups import members, read_spots
from regard.synthetic.translation.lexicon import Frame, Noun, Tense, Verb, reserved

_TENSES: dict[str, tuple[Tense, ...]] = {
    "all": ("present", "progressive", "past"),
    "simple": ("present", "past"),
    "state": ("present",),
}


def _verb(words: str, translation: str, mode: str) -> Verb:
    lemma, _, particle = words.partition(" ")
    infinitive, _, preposition = translation.partition(" ")
    after = f" {particle}" if particle and not preposition else ""
    links = "0-0 1~0" if after else "0-0"
    present, preterite = spanish.present(infinitive), spanish.preterite(infinitive)
    past = english.past(lemma)

    def forms(sources: Iterable[str], targets: Iterable[str]) -> tuple[AlignedPhrase, ...]:
        pairs = zip(sources, targets, strict=True)
        return tuple(aligned_phrase(source + after, target, links) for source, target in pairs)

    by_person = [english.third_person(lemma) if person == english.THIRD else lemma for person in range(5)]
    return Verb(
        words,
        frozenset(mode.split()),
        _TENSES[mode.split()[0]],
        aligned_phrase(particle, preposition) if preposition else None,
        present=forms(by_person, present),
        past=forms([past] * 5, preterite),
        base_present=forms([lemma] * 5, present),
        base_past=forms([lemma] * 5, preterite),
        gerund=aligned_phrase(english.gerund(lemma) + after, spanish.gerund(infinitive), links),
        past_like_base=past == lemma,
    )


def read_frames(
    row: tuple[str, str, str, str], nouns: Mapping[str, Noun], prepositions: Mapping[str, AlignedPhrase]
) -> tuple[Frame, ...]:
    """The frames of one row, repeated by frequency: people act more often than animals."""
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
            read_spots(verbs.PLACES.get(place or ("lay" if "lay" in mode else ""), ""), nouns, prepositions),
            nouns[members(subjects)[0]].person,
            (_lifeless(kept[0]), _lifeless(kept[1])),
            _question_words(kept[0]) if verb.preposition is None else (),
        )
        found.append(frame)
        _register(frame)
    people = [frame for frame in found if frame.human]
    return (*found, *people * 2) if len(people) < len(found) else tuple(found)


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
