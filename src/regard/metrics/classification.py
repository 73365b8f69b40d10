"""How good labels and scores are: accuracy, F1, Matthews, Pearson and Spearman, and the table of confusions.

Where a number is not defined it is 0, without a warning: the F1 of a label that is neither found nor wanted, and the
correlations (Matthews among them) of a side that is constant, since that tells nothing about the other. What is not a
number goes through: the correlation with nan is nan.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from sklearn import metrics as sklearn


def scores(
    found: Sequence[str],
    wanted: Sequence[str],
    labels: Sequence[str],
    metrics: Sequence[str] = ("accuracy", "macro_f1"),
) -> dict[str, float]:
    """Some scores of found labels, by name; `labels` are all there are, in their order.

    The names: "accuracy", "matthews", "f1" (of two labels, the F1 of the second), "f1_good" (of the label "good") and
    "macro_f1" (the mean over the labels).
    """
    _check(found, wanted, labels)
    functions: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
        "accuracy": accuracy,
        "f1": partial(f1, labels=labels),
        "macro_f1": macro_f1,
        "matthews": matthews,
        **{f"f1_{label}": partial(f1_of, label=label) for label in labels},
    }
    return {name: functions[name](found, wanted) for name in metrics}


def number_scores(
    found: Sequence[float], wanted: Sequence[float], metrics: Sequence[str] = ("pearson", "spearman")
) -> dict[str, float]:
    """Some of "pearson" and "spearman" of found numbers, by name."""
    functions = {"pearson": pearson, "spearman": spearman}
    return {name: functions[name](found, wanted) for name in metrics}


def accuracy(found: Sequence[str], wanted: Sequence[str]) -> float:
    """The share of labels that are right."""
    return float(sklearn.accuracy_score(wanted, found))


def f1(found: Sequence[str], wanted: Sequence[str], labels: Sequence[str]) -> float:
    """Of two labels, the F1 of the second, the positive one, as GLUE has it for MRPC and QQP."""
    assert len(labels) == 2, f"of {len(labels)} labels none is the positive one; wanted f1_<label> or macro_f1"
    return f1_of(found, wanted, labels[1])


def f1_of(found: Sequence[str], wanted: Sequence[str], label: str) -> float:
    """The F1 of one label."""
    return float(sklearn.f1_score(wanted, found, labels=[label], average="macro", zero_division=0))


def macro_f1(found: Sequence[str], wanted: Sequence[str]) -> float:
    """The mean F1 of the labels that are found or wanted at all."""
    return float(sklearn.f1_score(wanted, found, average="macro", zero_division=0))


def matthews(found: Sequence[str], wanted: Sequence[str]) -> float:
    """The correlation of found and wanted labels, -1 to 1 (Matthews 1975; of more than two labels, Gorodkin 2004)."""
    return 0.0 if len({*found}) == 1 or len({*wanted}) == 1 else float(sklearn.matthews_corrcoef(wanted, found))


def pearson(found: Sequence[float], wanted: Sequence[float]) -> float:
    """How near to a line the found numbers rise with the wanted ones, -1 to 1."""
    return _correlation(stats.pearsonr, found, wanted, tolerance=1e-12)


def spearman(found: Sequence[float], wanted: Sequence[float]) -> float:
    """The same of their ranks, equal numbers sharing one: only the order counts."""
    return _correlation(stats.spearmanr, found, wanted)


def _correlation(
    correlate: Callable[..., Any], found: Sequence[float], wanted: Sequence[float], tolerance: float = 0.0
) -> float:
    """`tolerance`: what differs by less, relative to its size, is constant; rounding alone makes such differences."""
    assert len(found) == len(wanted) > 0
    sides = np.array([found, wanted], dtype=float)
    if not np.isfinite(sides).all():
        return math.nan
    if (np.ptp(sides, axis=1) <= tolerance * np.abs(sides).max(axis=1)).any():
        return 0.0
    return float(correlate(*sides).statistic)


@dataclass(frozen=True)
class Confusion:
    """How often each label was wanted (rows) and found (columns)."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def table(self) -> list[list[str]]:
        """Rows of words for printing: the labels found above, those wanted before their counts."""
        rows = zip(self.labels, self.counts, strict=True)
        return [["wanted \\ found", *self.labels], *([label, *(f"{n:,}" for n in counts)] for label, counts in rows)]


def confusion(found: Sequence[str], wanted: Sequence[str], labels: Sequence[str]) -> Confusion:
    """The table of confusions, its labels in the order given."""
    _check(found, wanted, labels)
    counts = Counter(zip(wanted, found, strict=True))
    return Confusion(tuple(labels), tuple(tuple(counts[row, column] for column in labels) for row in labels))


def _check(found: Sequence[str], wanted: Sequence[str], labels: Sequence[str]) -> None:
    assert len(found) == len(wanted) > 0, "as many labels found as wanted, and some"
    assert {*found, *wanted} <= {*labels}, "no label but those that there are"
