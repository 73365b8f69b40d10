"""Metrics of translation: exact match, BLEU and chrF.

`CorpusScorer` counts pair by pair and keeps only the counts, so a test set may be of any size. Its BLEU is sacrebleu's
computation on sacrebleu's counts, and its chrF is tested equal to sacrebleu's.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU, CHRF

ORDER = 6  # of chrF's longest character n-gram
BETA = 2  # weight of recall over precision


class Score(NamedTuple):
    """A corpus score and its signature, which names all settings (Post 2018)."""

    value: float
    signature: str


class CorpusBleu:
    """sacrebleu's corpus BLEU, from the sums of its counts of each sentence; the settings are sacrebleu's."""

    def __init__(self, **settings: Any) -> None:
        self._metric = BLEU(effective_order=True, **settings)  # of a sentence; the score of the corpus does not use it
        self._counts: Counter[str] = Counter()

    def add(self, prediction: str, references: Sequence[str]) -> None:
        found = self._metric.sentence_score(prediction, references)
        self._counts.update({"system": found.sys_len, "reference": found.ref_len})
        for order, (correct, total) in enumerate(zip(found.counts, found.totals, strict=True), 1):
            self._counts.update({f"correct {order}": correct, f"total {order}": total})

    @property
    def value(self) -> float:
        """0 to 100."""
        counts = self._counts
        found = BLEU.compute_bleu(
            correct=[counts[f"correct {order}"] for order in range(1, 5)],
            total=[counts[f"total {order}"] for order in range(1, 5)],
            sys_len=counts["system"],
            ref_len=counts["reference"],
            smooth_method="exp",
        )
        return float(found.score)


class CorpusScorer:
    """Scores a corpus pair by pair."""

    def __init__(self) -> None:
        self.pairs = 0
        self._exact = 0
        self._bleu = CorpusBleu()
        self._chrf: Counter[str] = Counter()

    def add(self, prediction: str, reference: str) -> None:
        self.pairs += 1
        self._exact += prediction.split() == reference.split()
        self._bleu.add(prediction, [reference])
        self._chrf.update(_characters(prediction, reference))

    @property
    def exact_match(self) -> float:
        """The fraction of predictions equal to their reference, up to white space."""
        return self._exact / self.pairs

    @property
    def bleu(self) -> Score:
        """Corpus BLEU, 0 to 100."""
        return Score(self._bleu.value, _signature(BLEU))

    @property
    def chrf(self) -> Score:
        """Corpus chrF, 0 to 100: F-score of the mean precision and mean recall of 1- to 6-grams (Popović 2015)."""
        counts = self._chrf
        orders = [n for n in range(1, ORDER + 1) if counts[f"prediction {n}"] and counts[f"reference {n}"]]
        precision, recall = (
            sum(counts[f"match {n}"] / counts[f"{side} {n}"] for n in orders) / max(1, len(orders))
            for side in ("prediction", "reference")
        )
        denominator = BETA**2 * precision + recall
        value = 100 * (1 + BETA**2) * precision * recall / denominator if denominator else 0.0
        return Score(value, _signature(CHRF))


def score_corpus(predictions: Sequence[str], references: Sequence[str]) -> CorpusScorer:
    """Score a corpus in memory."""
    found = CorpusScorer()
    for prediction, reference in zip(predictions, references, strict=True):
        found.add(prediction, reference)
    return found


def _characters(prediction: str, reference: str) -> dict[str, int]:
    """chrF's counts of one pair, for each n: n-grams of prediction, reference and both; without white space."""
    one, other = "".join(prediction.split()), "".join(reference.split())
    counts = {}
    for n in range(1, ORDER + 1):
        here, there = _ngrams(one, n), _ngrams(other, n)
        counts[f"prediction {n}"] = here.total() if there else 0
        counts[f"reference {n}"] = there.total()
        counts[f"match {n}"] = (here & there).total()
    return counts


def _ngrams(text: str, n: int) -> Counter[str]:
    return Counter(text[start : start + n] for start in range(len(text) - n + 1))


@cache
def _signature(kind: type[BLEU] | type[CHRF]) -> str:
    metric = kind()
    metric.corpus_score(["a"], [["a"]])  # the signature has the number of references, known after scoring
    return str(metric.get_signature())
