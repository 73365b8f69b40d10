"""Metrics of labels and scores: accuracy, F1, Matthews, Pearson and Spearman correlation, and the confusion matrix.

An undefined metric is 0, without a warning: the F1 of a label that occurs neither in predictions nor in references, and
the correlation (Matthews too) with a constant. NaN passes through: the correlation with NaN is NaN.
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


def label_metrics(
    predictions: Sequence[str],
    references: Sequence[str],
    labels: Sequence[str],
    metrics: Sequence[str] = ("accuracy", "macro_f1"),
) -> dict[str, float]:
    """Some metrics of predicted labels, by name; `labels` are all labels, in order.

    Names: "accuracy", "matthews", "f1" (of two labels, that of the second), "f1_good" (of the label "good") and
    "macro_f1" (the mean over the labels).
    """
    _check(predictions, references, labels)
    functions: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
        "accuracy": accuracy,
        "f1": partial(f1, labels=labels),
        "macro_f1": macro_f1,
        "matthews": matthews,
        **{f"f1_{label}": partial(label_f1, label=label) for label in labels},
    }
    return {name: functions[name](predictions, references) for name in metrics}


def regression_metrics(
    predictions: Sequence[float], references: Sequence[float], metrics: Sequence[str] = ("pearson", "spearman")
) -> dict[str, float]:
    """Some of "pearson" and "spearman" of predicted scores, by name."""
    functions = {"pearson": pearson, "spearman": spearman}
    return {name: functions[name](predictions, references) for name in metrics}


def accuracy(predictions: Sequence[str], references: Sequence[str]) -> float:
    """The fraction of labels that are right."""
    return float(sklearn.accuracy_score(references, predictions))


def f1(predictions: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> float:
    """Of two labels, the F1 of the second, the positive one, as GLUE scores MRPC and QQP."""
    assert len(labels) == 2, f"of {len(labels)} labels none is the positive one; use f1_<label> or macro_f1"
    return label_f1(predictions, references, labels[1])


def label_f1(predictions: Sequence[str], references: Sequence[str], label: str) -> float:
    """The F1 of one label."""
    return float(sklearn.f1_score(references, predictions, labels=[label], average="macro", zero_division=0))


def macro_f1(predictions: Sequence[str], references: Sequence[str]) -> float:
    """The mean F1 of the labels that occur."""
    return float(sklearn.f1_score(references, predictions, average="macro", zero_division=0))


def matthews(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Matthews correlation of the labels, -1 to 1 (Matthews 1975; more than two labels: Gorodkin 2004)."""
    return (
        0.0
        if len({*predictions}) == 1 or len({*references}) == 1
        else float(sklearn.matthews_corrcoef(references, predictions))
    )


def pearson(predictions: Sequence[float], references: Sequence[float]) -> float:
    """Pearson correlation, -1 to 1."""
    return _correlation(stats.pearsonr, predictions, references, tolerance=1e-12)


def spearman(predictions: Sequence[float], references: Sequence[float]) -> float:
    """Spearman rank correlation, -1 to 1; ties share a rank."""
    return _correlation(stats.spearmanr, predictions, references)


def _correlation(
    correlate: Callable[..., Any], predictions: Sequence[float], references: Sequence[float], tolerance: float = 0.0
) -> float:
    """`tolerance`: relative differences below it are rounding errors of a constant."""
    assert len(predictions) == len(references) > 0
    sides = np.array([predictions, references], dtype=float)
    if not np.isfinite(sides).all():
        return math.nan
    if (np.ptp(sides, axis=1) <= tolerance * np.abs(sides).max(axis=1)).any():
        return 0.0
    return float(correlate(*sides).statistic)


@dataclass(frozen=True)
class ConfusionMatrix:
    """How often each reference label (rows) was predicted as each label (columns)."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def table(self) -> list[list[str]]:
        """Rows of strings for printing: predicted labels in the header, reference labels before their counts."""
        rows = zip(self.labels, self.counts, strict=True)
        return [["wanted \\ found", *self.labels], *([label, *(f"{n:,}" for n in counts)] for label, counts in rows)]


def confusion_matrix(predictions: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> ConfusionMatrix:
    """The confusion matrix, with labels in the order given."""
    _check(predictions, references, labels)
    counts = Counter(zip(references, predictions, strict=True))
    return ConfusionMatrix(tuple(labels), tuple(tuple(counts[row, column] for column in labels) for row in labels))


def _check(predictions: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> None:
    assert len(predictions) == len(references) > 0, "wanted as many predictions as references, not empty"
    assert {*predictions, *references} <= {*labels}, "unknown label"
