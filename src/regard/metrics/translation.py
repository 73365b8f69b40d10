"""How good translations are: exact match, and BLEU and chrF as sacrebleu computes them."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF


class Score(NamedTuple):
    """A corpus score, and the signature without which it means nothing (Post 2018)."""

    value: float
    signature: str


def exact_match(predictions: Sequence[str], references: Sequence[str]) -> float:
    """The share of predictions that equal their reference to the letter, white space aside."""
    assert len(predictions) == len(references) > 0
    same = sum(p.split() == r.split() for p, r in zip(predictions, references, strict=True))
    return same / len(references)


def bleu(predictions: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus BLEU, 0 to 100."""
    metric = BLEU()
    value = metric.corpus_score(list(predictions), [list(references)]).score
    return Score(value, str(metric.get_signature()))


def chrf(predictions: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF, 0 to 100."""
    metric = CHRF()
    value = metric.corpus_score(list(predictions), [list(references)]).score
    return Score(value, str(metric.get_signature()))
