"""Scores: known values, with their signatures."""

import pytest

from regard.metrics.translation import bleu, chrf, exact_match


def test_exact_match_is_a_share_and_does_not_mind_spaces():
    assert exact_match(["a b", "c", "d "], ["a b", "x", "d"]) == pytest.approx(2 / 3)


def test_a_perfect_translation_scores_100_and_nothing_scores_0():
    references = ["the cat sat on the mat today", "we are eating bread with them"]
    assert bleu(references, references).value == pytest.approx(100)
    assert chrf(references, references).value == pytest.approx(100)
    assert bleu(["x", "y"], references).value == pytest.approx(0, abs=1e-6)


def test_bleu_by_hand():
    """Precisions 5/6, 4/5, 3/4, 2/3, no brevity penalty: their geometric mean."""
    found = bleu(["the cat sat on the rug"], ["the cat sat on the mat"])
    assert found.value == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    assert found.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
