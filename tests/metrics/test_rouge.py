"""ROUGE by hand: counts of words, pairs of words and the longest common subsequence."""

import pytest

from regard.metrics.rouge import RougeScorer


def scored(*pairs):
    scorer = RougeScorer()
    for prediction, reference in pairs:
        scorer.add(prediction, reference)
    return scorer.scores()


def test_a_summary_by_hand():
    # 4 of 5 and 4 of 6 words; of 4 and 5 pairs "on the" and "the mat"; "cat on the mat" is a common subsequence.
    found = scored(("a cat on the mat", "the cat sat on the mat"))
    words, pairs = 2 * (4 / 5) * (4 / 6) / (4 / 5 + 4 / 6), 2 * (2 / 4) * (2 / 5) / (2 / 4 + 2 / 5)
    assert found == pytest.approx({"rouge1": 100 * words, "rouge2": 100 * pairs, "rougeL": 100 * words})


def test_order_counts_in_the_longest_common_subsequence_only():
    found = scored(("mat the", "the mat"))
    assert found == pytest.approx({"rouge1": 100, "rouge2": 0, "rougeL": 50})


def test_words_are_stemmed():
    assert scored(("cats walking", "cat walked"))["rouge1"] == pytest.approx(100)


def test_a_corpus_has_the_mean_of_its_pairs():
    assert scored(("a dog", "a dog"), ("a dog", "no cats"))["rouge1"] == pytest.approx(50)
    assert scored(("", "a dog"))["rougeL"] == 0
