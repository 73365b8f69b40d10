"""What a word is: its forms in both languages and the words it goes with.

The words refer to each other in circles, so each shows itself by its lemma alone.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple
from zlib import crc32

from regard.synthetic.translation.aligned_phrases import AlignedPhrase

Tense = Literal["present", "progressive", "past"]

RESERVED_ONE_IN = 8


@cache
def reserved(word: str, noun: str) -> bool:
    """Whether a verb with this object, or an adjective with this noun, is reserved for validation."""
    # crc32 is the same on every machine and in every process; Python's own hash is not. It happens to
    # reserve (eat, bread), which the lecture's sentence needs; a test checks it.
    return crc32(f"{word} {noun}".encode()) % RESERVED_ONE_IN == 0


@dataclass(slots=True, eq=False, repr=False)
class Determiner:
    """`the`, `my`, `two`: English by number, Spanish by number and gender."""

    lemma: str
    english: tuple[tuple[str, ...], tuple[str, ...]]
    spanish: tuple[tuple[str, ...], ...]
    article: bool  # `el` and `un` stand before a feminine noun with stressed a: el agua, but esta agua

    def __repr__(self) -> str:
        return f"Determiner({self.lemma!r})"


class Pronoun(NamedTuple):
    """A subject pronoun, which Spanish drops, with its object form, which Spanish puts before the verb."""

    subject: AlignedPhrase
    object: AlignedPhrase
    person: int
    column: int


class Adjective(NamedTuple):
    """An adjective with its four forms and its verb: ser, estar, or tener with a noun (tener hambre)."""

    lemma: str
    copula: str
    forms: tuple[AlignedPhrase, ...]


@dataclass(slots=True, eq=False, repr=False)
class Noun:
    """A noun and what goes with it. Pairs of lists are (open, reserved for validation)."""

    lemma: str
    english: tuple[str, str]
    spanish: tuple[str, str]
    feminine: bool
    stressed_a: bool
    person: bool
    animal: bool
    mass: bool  # bread, water: no plural, no number
    determiners: dict[str, tuple[tuple[Determiner, bool], ...]]  # by role: (determiner, plural)
    attributes: tuple[list[Adjective], list[Adjective]] = field(default_factory=lambda: ([], []))
    states: tuple[list[Adjective], list[Adjective]] = field(default_factory=lambda: ([], []))
    acts: "list[Frame]" = field(default_factory=list)
    undergoes: "tuple[list[Frame], list[Frame]]" = field(default_factory=lambda: ([], []))
    spots: "tuple[Spot, ...]" = ()
    wholes: "tuple[Noun, ...]" = ()
    sayings: tuple[str, ...] = ()  # what a relative clause may say about it, with its frequency

    def __repr__(self) -> str:
        return f"Noun({self.lemma!r})"


class Spot(NamedTuple):
    """A preposition and the places it fits."""

    preposition: AlignedPhrase
    nouns: tuple[Noun, ...]


@dataclass(slots=True, eq=False, repr=False)
class Verb:
    """A verb with its forms as aligned phrases, by person; `base_*` have the English form after do, does, did."""

    lemma: str
    flags: frozenset[str]
    tenses: tuple[Tense, ...]
    preposition: AlignedPhrase | None
    present: tuple[AlignedPhrase, ...]
    past: tuple[AlignedPhrase, ...]
    base_present: tuple[AlignedPhrase, ...]
    base_past: tuple[AlignedPhrase, ...]
    gerund: AlignedPhrase
    past_like_base: bool  # read, put, cut: `i read` does not tell its tense

    def __repr__(self) -> str:
        return f"Verb({self.lemma!r})"


@dataclass(slots=True, eq=False, repr=False)
class Frame:
    """A verb with the subjects, objects and places it makes sense with."""

    verb: Verb
    subjects: tuple[Noun, ...]
    objects: tuple[tuple[Noun, ...], tuple[Noun, ...]]  # open, reserved
    spots: tuple[Spot, ...]
    human: bool  # people do it, so a pronoun may
    askable: tuple[tuple[Noun, ...], tuple[Noun, ...]]  # the lifeless among its objects: which book, how many
    question_words: tuple[str, ...]  # what and who, where its objects answer to them

    def __repr__(self) -> str:
        return f"Frame({self.verb.lemma!r})"


@dataclass(slots=True, eq=False, repr=False)
class Description:
    """An adjective with the nouns it may be said of."""

    adjective: Adjective
    nouns: tuple[list[Noun], list[Noun]]  # open, reserved
    human: bool

    def __repr__(self) -> str:
        return f"Description({self.adjective.lemma!r})"
