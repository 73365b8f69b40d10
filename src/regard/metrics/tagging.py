"""Metrics of word labels: entities by conlleval's definition, and single words.

A prefix before the type marks the position in an entity: B begin, I inside, E end, S single, O outside (both kinds of
BIO, BIOES; L and U of BILOU are E and S). Invalid sequences are repaired as in conlleval (Tjong Kim Sang & Buchholz
2000): an I without an entity of its type before it begins one. An entity is correct if first word, last word and type
are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.metrics.classification import accuracy, macro_f1

ENTITY_LABEL = re.compile(r"([BIESLU])(?:-(.+))?")
SYNONYMS = {"L": "E", "U": "S"}

Entity = tuple[str, int, int]  # type, first word, last word
Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class EntityCounts:
    """Entities predicted, true, and both; a fraction of nothing is 0."""

    predicted: int
    true: int
    correct: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.predicted + self.true) if self.predicted + self.true else 0.0


@dataclass(frozen=True)
class TaggingMetrics:
    """`accuracy` counts words. For entities, `total` and `by_type` count them; else `macro_f1` is of the labels."""

    accuracy: float
    total: EntityCounts | None
    by_type: dict[str, EntityCounts]
    macro_f1: float | None

    def metrics(self) -> dict[str, float]:
        """The metrics by name, over all types."""
        if self.total is None:
            return {"accuracy": self.accuracy, "macro_f1": self.macro_f1 or 0.0}
        total = self.total
        return {"f1": total.f1, "precision": total.precision, "recall": total.recall, "accuracy": self.accuracy}


def tagging_metrics(predictions: Sentences, references: Sentences) -> TaggingMetrics:
    """The metrics of predicted labels; the labels themselves show whether they are entity labels."""
    assert [len(sentence) for sentence in predictions] == [len(sentence) for sentence in references]
    flat, true = ([label for sentence in side for label in sentence] for side in (predictions, references))
    right = accuracy(flat, true)
    if are_entity_labels({*flat, *true}):
        by_type = _count(predictions, references)
        return TaggingMetrics(right, _sum(by_type.values()), by_type, None)
    return TaggingMetrics(right, None, {}, macro_f1(flat, true))


def are_entity_labels(labels: Iterable[str]) -> bool:
    """Whether the labels mark entities (O, B-PER, I-PER) rather than single words (NOUN, VERB)."""
    return all(label == "O" or ENTITY_LABEL.fullmatch(label) for label in labels)


def extract_entities(labels: Sequence[str]) -> list[Entity]:
    """The entities in the labels of a sentence; a prefix without a type has the type ""."""
    marks = [("O", ""), *map(_split, labels), ("O", "")]
    found: list[Entity] = []
    start = 0
    for index, (before, here) in enumerate(pairwise(marks)):
        if _ends(before, here):
            found.append((before[1], start, index - 1))
        if _begins(before, here):
            start = index
    return found


def _split(label: str) -> tuple[str, str]:
    if match := ENTITY_LABEL.fullmatch(label):
        return SYNONYMS.get(match[1], match[1]), match[2] or ""
    assert label == "O", f"{label} is not an entity label"
    return "O", ""


def _ends(before: tuple[str, str], here: tuple[str, str]) -> bool:
    return before[0] != "O" and (before[0] in "ES" or here[0] in "BSO" or before[1] != here[1])


def _begins(before: tuple[str, str], here: tuple[str, str]) -> bool:
    return here[0] != "O" and (here[0] in "BS" or before[0] in "ESO" or before[1] != here[1])


def _count(predictions: Sentences, references: Sentences) -> dict[str, EntityCounts]:
    tallies: dict[str, Counter[str]] = {"predicted": Counter(), "true": Counter(), "correct": Counter()}
    for here, there in zip(predictions, references, strict=True):
        one, other = {*extract_entities(here)}, {*extract_entities(there)}
        for name, some in (("predicted", one), ("true", other), ("correct", one & other)):
            tallies[name].update(kind for kind, _, _ in some)
    kinds = sorted({*tallies["predicted"], *tallies["true"]})
    return {kind: EntityCounts(**{name: tally[kind] for name, tally in tallies.items()}) for kind in kinds}


def _sum(counts: Iterable[EntityCounts]) -> EntityCounts:
    counts = list(counts)
    return EntityCounts(*(sum(getattr(one, name) for one in counts) for name in ("predicted", "true", "correct")))
