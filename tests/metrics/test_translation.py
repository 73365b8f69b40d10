"""Scores: known values, with their signatures; counted pair by pair they equal sacrebleu's over the whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from regard.metrics.translation import score_corpus


def test_exact_match_is_a_share_and_does_not_mind_spaces():
    assert score_corpus(["a b", "c", "d "], ["a b", "x", "d"]).exact_match == pytest.approx(2 / 3)


def test_a_perfect_translation_scores_100_and_nothing_scores_0():
    references = ["the cat sat on the mat today", "we are eating bread with them"]
    assert score_corpus(references, references).bleu.value == pytest.approx(100)
    assert score_corpus(references, references).chrf.value == pytest.approx(100)
    assert score_corpus(["x", "y"], references).bleu.value == pytest.approx(0, abs=1e-6)
    assert score_corpus([""], ["a"]).chrf.value == 0


def test_bleu_by_hand():
    """Precisions 5/6, 4/5, 3/4, 2/3, no brevity penalty: their geometric mean."""
    found = score_corpus(["the cat sat on the rug"], ["the cat sat on the mat"]).bleu
    assert found.value == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    assert found.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


TEXT = st.lists(st.sampled_from(["the", "cat", "sat", "¿dónde", "está?", "x", "mat."]), max_size=12).map(" ".join)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6))
def test_counting_pair_by_pair_equals_the_whole_corpus(pairs):
    predictions, references = zip(*pairs, strict=True)
    found = score_corpus(predictions, references)
    for metric, score in ((BLEU(), found.bleu), (CHRF(), found.chrf)):
        assert score.value == pytest.approx(metric.corpus_score(predictions, [references]).score, abs=1e-9)
        assert score.signature == str(metric.get_signature())
