"""Scores of labels and numbers: by hand, by scikit-learn, and where they are not defined."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from regard.metrics.classification import (
    confusion_matrix,
    label_metrics,
    macro_f1,
    matthews,
    pearson,
    regression_metrics,
    spearman,
)

WANTED = list("1101001110")
FOUND = list("1001101010")
ALL = ("accuracy", "f1", "matthews")


def test_two_labels_by_hand():
    """The F1 is of the second label, 2 TP / (2 TP + FP + FN), and Matthews' number is written out."""
    counts = Counter(zip(WANTED, FOUND, strict=True))
    tp, fp, fn, tn = counts["1", "1"], counts["0", "1"], counts["1", "0"], counts["0", "0"]
    assert (tp, fp, fn, tn) == (4, 1, 2, 3)
    found = label_metrics(FOUND, WANTED, ["0", "1"], ALL)
    assert found == {
        "accuracy": pytest.approx(7 / 10),
        "f1": pytest.approx(8 / 11),
        "matthews": pytest.approx((4 * 3 - 1 * 2) / math.sqrt(5 * 6 * 4 * 5)),
    }
    assert list(found) == list(ALL)


def test_the_positive_label_is_the_second_whatever_it_is_called():
    assert label_metrics(FOUND, WANTED, ["1", "0"], ["f1"])["f1"] == pytest.approx(6 / 9)
    assert label_metrics(["b", "a"], ["b", "b"], ["b", "a"], ["f1"])["f1"] == 0


def test_macro_f1_is_the_mean_of_those_that_occur():
    wanted, found = list("aabbc"), list("abbbb")
    # a: 2·1/(2+1) = 2/3; b: 2·2/(2+4) = 2/3; c: 0; d occurs nowhere
    assert label_metrics(found, wanted, list("abcd"), ["macro_f1"])["macro_f1"] == pytest.approx(
        (2 / 3 + 2 / 3 + 0) / 3
    )


LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


@settings(deadline=None, max_examples=30)
@given(LABELS)
def test_equal_to_scikit_learn(pairs):
    found, wanted = map(list, zip(*pairs, strict=True))
    named = ("accuracy", "macro_f1", "matthews", "f1_a", "f1_b", "f1_c")
    ours = label_metrics(found, wanted, ["a", "b", "c"], named)
    assert np.array_equal(
        confusion_matrix(found, wanted, "bca").counts, sklearn.confusion_matrix(wanted, found, labels=list("bca"))
    )
    assert ours["accuracy"] == pytest.approx(accuracy_score(wanted, found))
    assert ours["macro_f1"] == pytest.approx(f1_score(wanted, found, average="macro", zero_division=0))
    each = f1_score(wanted, found, labels=list("abc"), average=None, zero_division=0)
    assert [ours[f"f1_{label}"] for label in "abc"] == pytest.approx(each.tolist())
    if len({*found}) > 1 and len({*wanted}) > 1:
        assert ours["matthews"] == pytest.approx(matthews_corrcoef(wanted, found))
    two = ["c" if label == "a" else label for label in found], ["c" if label == "a" else label for label in wanted]
    assert label_metrics(*two, ["b", "c"], ["f1"])["f1"] == pytest.approx(
        f1_score(two[1], two[0], pos_label="c", zero_division=0) if "c" in {*two[0], *two[1]} else 0.0
    )


def test_what_is_not_defined_is_0_without_a_warning():
    assert matthews(list("1111"), list("1010")) == 0
    assert matthews(list("1010"), list("1111")) == 0
    assert matthews(["1"], ["1"]) == 0
    assert label_metrics(["0", "0"], ["0", "0"], ["0", "1"], ALL) == {"accuracy": 1, "f1": 0, "matthews": 0}
    assert pearson([1, 1, 1], [1, 2, 3]) == spearman([1, 2, 3], [2, 2, 2]) == 0
    assert pearson([3.0], [4.0]) == spearman([3.0], [4.0]) == 0
    near = [2.5, np.nextafter(2.5, 3), 2.5]
    assert pearson(near, [1, 2, 3]) == 0
    assert spearman(near, [1, 2, 1]) == pytest.approx(1)  # the order is plain however small the steps
    assert all(math.isnan(one) for one in regression_metrics([1, math.nan, 2], [1, 2, 3]).values())
    assert math.isnan(pearson([1, math.inf], [1, 2]))


def test_correlations_by_hand():
    found, wanted = [1.0, 2.0, 4.0, 3.0], [0.0, 1.0, 2.0, 5.0]
    # deviations (-1.5, -0.5, 1.5, 0.5) and (-2, -1, 0, 3): 5 / sqrt(5 · 14); ranks 1 2 4 3 and 1 2 3 4: 1 - 6·2/60
    assert regression_metrics(found, wanted) == {
        "pearson": pytest.approx(5 / math.sqrt(70)),
        "spearman": pytest.approx(0.8),
    }


def test_equal_numbers_share_their_rank():
    found, wanted = [1, 2, 2, 3], [1, 2, 3, 4]
    assert spearman(found, wanted) == pytest.approx(pearson([1, 2.5, 2.5, 4], wanted))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=3, max_size=20))
def test_correlations_equal_scipy(pairs):
    found, wanted = ([number / 10 for number in side] for side in zip(*pairs, strict=True))
    if len({*found}) > 1 and len({*wanted}) > 1:
        assert pearson(found, wanted) == pytest.approx(stats.pearsonr(found, wanted)[0])
        assert spearman(found, wanted) == pytest.approx(stats.spearmanr(found, wanted)[0])


def test_confusions_are_wanted_by_found():
    table = confusion_matrix(list("aabc"), list("abbc"), list("abcd"))
    assert table.counts == ((1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 0))
    assert table.table()[0] == ["wanted \\ found", "a", "b", "c", "d"]
    assert table.table()[2] == ["b", "1", "1", "0", "0"]
    assert confusion_matrix(["x"] * 1234, ["x"] * 1234, ["x"]).table() == [["wanted \\ found", "x"], ["x", "1,234"]]


def test_programmers_mistakes():
    with pytest.raises(AssertionError):
        label_metrics(["a"], [], ["a"])
    with pytest.raises(AssertionError):
        label_metrics([], [], ["a"])
    with pytest.raises(AssertionError, match="unknown label"):
        label_metrics(["a"], ["z"], ["a"])
    with pytest.raises(AssertionError):
        pearson([], [])
    with pytest.raises(AssertionError, match="none is the positive one"):
        label_metrics(["a"], ["a"], ["a", "b", "c"], ["f1"])
    with pytest.raises(KeyError):
        label_metrics(["a"], ["a"], ["a"], ["bleu"])


def test_macro_f1_has_no_favorite():
    assert macro_f1(list("aab"), list("aab")) == 1
    assert macro_f1(list("aaaa"), list("aaab")) == pytest.approx((6 / 7 + 0) / 2)
