"""How good the labels of words are: whole entities by conlleval's definition, and single words.

Entities are marked by what stands before their type: B begins, I goes on, E ends, S is one alone, O is outside (BIO in
both its kinds, BIOES; L and U of BILOU are E and S). As conlleval has it (Tjong Kim Sang & Buchholz 2000), what cannot
be is read kindly: an I with nothing of its type before it begins an entity. An entity is right when its first word,
its last word and its type are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.metrics.classification import accuracy, macro_f1

MARKED = re.compile(r"([BIESLU])(?:-(.+))?")
SAME = {"L": "E", "U": "S"}

Entity = tuple[str, int, int]  # type, first word, last word
Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Counts:
    """Entities found, wanted, and both; a share of nothing is 0."""

    found: int
    wanted: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.found + self.wanted) if self.found + self.wanted else 0.0


@dataclass(frozen=True)
class TagScores:
    """`accuracy` is of words. With entities, `total` and `by_type` count them; without, `macro_f1` is of the labels."""

    accuracy: float
    total: Counts | None
    by_type: dict[str, Counts]
    macro_f1: float | None

    def numbers(self) -> dict[str, float]:
        """The scores by name, those of all types together."""
        if self.total is None:
            return {"accuracy": self.accuracy, "macro_f1": self.macro_f1 or 0.0}
        total = self.total
        return {"f1": total.f1, "precision": total.precision, "recall": total.recall, "accuracy": self.accuracy}


def tag_scores(found: Sentences, wanted: Sentences) -> TagScores:
    """The scores of labels found for sentences; whether they mark entities is seen from the labels themselves."""
    assert [len(sentence) for sentence in found] == [len(sentence) for sentence in wanted]
    flat_found, flat_wanted = ([label for sentence in side for label in sentence] for side in (found, wanted))
    right = accuracy(flat_found, flat_wanted)
    if marks_entities({*flat_found, *flat_wanted}):
        by_type = _count(found, wanted)
        return TagScores(right, _sum(by_type.values()), by_type, None)
    return TagScores(right, None, {}, macro_f1(flat_found, flat_wanted))


def marks_entities(labels: Iterable[str]) -> bool:
    """Whether the labels mark entities (O, B-PER, I-PER) rather than name single words (NOUN, VERB)."""
    return all(label == "O" or MARKED.fullmatch(label) for label in labels)


def entities(labels: Sequence[str]) -> list[Entity]:
    """The entities in the labels of a sentence; a mark without a type has the type ""."""
    marks = [("O", ""), *map(_split, labels), ("O", "")]
    found: list[Entity] = []
    start = 0
    for place, (before, here) in enumerate(pairwise(marks)):
        if _ends(before, here):
            found.append((before[1], start, place - 1))
        if _begins(before, here):
            start = place
    return found


def _split(label: str) -> tuple[str, str]:
    if match := MARKED.fullmatch(label):
        return SAME.get(match[1], match[1]), match[2] or ""
    assert label == "O", f"{label} marks no entity"
    return "O", ""


def _ends(before: tuple[str, str], here: tuple[str, str]) -> bool:
    return before[0] != "O" and (before[0] in "ES" or here[0] in "BSO" or before[1] != here[1])


def _begins(before: tuple[str, str], here: tuple[str, str]) -> bool:
    return here[0] != "O" and (here[0] in "BS" or before[0] in "ESO" or before[1] != here[1])


def _count(found: Sentences, wanted: Sentences) -> dict[str, Counts]:
    tallies: dict[str, Counter[str]] = {"found": Counter(), "wanted": Counter(), "right": Counter()}
    for here, there in zip(found, wanted, strict=True):
        one, other = {*entities(here)}, {*entities(there)}
        for name, some in (("found", one), ("wanted", other), ("right", one & other)):
            tallies[name].update(kind for kind, _, _ in some)
    kinds = sorted({*tallies["found"], *tallies["wanted"]})
    return {kind: Counts(**{name: tally[kind] for name, tally in tallies.items()}) for kind in kinds}


def _sum(counts: Iterable[Counts]) -> Counts:
    counts = list(counts)
    return Counts(*(sum(getattr(one, name) for one in counts) for name in ("found", "wanted", "right")))
