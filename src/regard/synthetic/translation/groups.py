"""Parse the shorthand of the tables: groups of nouns, and places with their prepositions."""

from collections.abc import Mapping
from functools import cache

from regard.synthetic.translation import vocabulary
from regard.synthetic.translation.aligned_phrases import AlignedPhrase
from regard.synthetic.translation.lexicon import Noun, Spot


@cache
def members(names: str) -> tuple[str, ...]:
    """The nouns of a list of groups and nouns, each once, in order."""
    found: dict[str, None] = {}
    for name in names.replace("+", " ").split():
        if name in vocabulary.GROUPS:
            found |= dict.fromkeys(members(vocabulary.GROUPS[name]))
        else:
            found |= dict.fromkeys(vocabulary.NOUNS.get(name, [name]))
    return tuple(found)


def read_spots(text: str, nouns: Mapping[str, Noun], prepositions: Mapping[str, AlignedPhrase]) -> tuple[Spot, ...]:
    """`in:kitchen+garden at:station` as prepositions with their places."""
    found = []
    for part in text.split():
        name, places = part.split(":")
        preposition = prepositions[name.replace("_", " ")]
        found.append(Spot(preposition, tuple(nouns[place] for place in members(places))))
    return tuple(found)
