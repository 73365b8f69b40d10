"""Scores of captions, worked out by hand."""

import random
import tracemalloc
from math import exp, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from regard.metrics.captions import bleu4, caption_words, cider, cider_d, exact_match


@pytest.mark.parametrize(
    ("caption", "found"),
    [
        ("A dog, running!", ["a", "dog", "running"]),
        ("The man's black-and-white T-shirt .", ["the", "man's", "black-and-white", "t-shirt"]),
        ("man’s 'best' -- friend", ["man's", "best", "friend"]),
        ("¿Dónde está? El niño…", ["dónde", "está", "el", "niño"]),
        ("कुत्ता दौड़ता है।", ["कुत्ता", "दौड़ता", "है"]),  # combining signs stay in their words
        ("... !", []),
    ],
)
def test_words_of_a_caption(caption, found):
    assert caption_words(caption) == found


def test_two_pictures_by_hand():
    """Two pictures, a reference each: "a red dog" and "a blue cat".

    idf: "a" is in both, log(2/2) = 0; every other n-gram of theirs is in one, log(2/1) = L.
    Prediction "a red cat" for the first:
      n=1: prediction (red L, cat L), reference (red L, dog L): cosine L² / (L√2 · L√2) = 1/2
      n=2: prediction (a red, red cat), reference (a red, red dog): 1/2 likewise
      n=3: "a red cat" against "a red dog": 0;  n=4: none: 0
      CIDEr = 10 · (1/2 + 1/2 + 0 + 0) / 4 = 2.5; nothing is repeated, lengths are equal: CIDEr-D the same.
    Prediction "a blue cat" for the second: 1, 1, 1 and 0 (no four words): 10 · 3/4 = 7.5.
    """
    predictions, references = ["A red cat.", "a blue cat"], [["a red dog"], ["a blue cat"]]
    for metric in (cider, cider_d):
        found = metric(predictions, references)
        assert found.each == pytest.approx([2.5, 7.5])
        assert found.value == pytest.approx(5)


def test_repeated_words_and_another_length_by_hand():
    """References "dog runs" and "cat"; prediction "dog dog dog dog" for the first. L = log 2 weighs every n-gram.

    CIDEr:   n=1: prediction (dog 4L), reference (dog L, runs L): 4L² / (4L · L√2) = 1/√2; n=2: "dog dog", none in
             common: 0. In all 10 · 1/√2 / 4 = 1.7678.
    CIDEr-D: n=1: min(4L, L) · L / (4L · L√2) = 1 / (4√2), and 4 words for 2: exp(-2² / (2 · 6²)).
             In all 10 / (4√2) / 4 · exp(-4/72) = 0.4181.
    """
    predictions, references = ["dog dog dog dog", "cat"], [["dog runs"], ["cat"]]
    assert cider(predictions, references).each == pytest.approx([10 / sqrt(2) / 4, 2.5])
    assert cider_d(predictions, references).each == pytest.approx([10 / (4 * sqrt(2)) / 4 * exp(-4 / 72), 2.5])


def test_several_references_are_averaged_and_a_picture_counts_once():
    """Three pictures. "dog" is in two references of the first, but in one picture: log 3; "a" in two: log 3/2.

    Prediction "a dog" against "dog": n=1: (log 3)² / (log 3 · √((log 3/2)² + (log 3)²)).
    Against "dog barks": "a" is missing: (log 3)² / (√((log 3/2)² + (log 3)²) · √2 log 3); "a dog" is not "dog barks".
    """
    references = [["dog", "dog barks"], ["a cat"], ["a cow"]]
    norm = sqrt(log(3 / 2) ** 2 + log(3) ** 2)
    wanted = 10 * (log(3) / norm + log(3) / (sqrt(2) * norm)) / 2 / 4
    assert cider(["a dog", "x", ""], references).each == pytest.approx([wanted, 0, 0])
    shorter = 10 * (log(3) / norm * exp(-1 / 72) + log(3) / (sqrt(2) * norm)) / 2 / 4
    assert cider_d(["a dog", "x", ""], references).each == pytest.approx([shorter, 0, 0])


def test_a_single_picture_scores_nothing():
    assert cider(["a dog"], [["a dog"]]).value == cider_d(["a dog"], [["a dog"]]).value == 0


WORDS = st.lists(st.sampled_from(["a", "the", "dog", "cat", "runs", "sits", "on", "mat"]), max_size=9).map(" ".join)
CORPUS = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=4)), min_size=1, max_size=6)


@settings(deadline=None)
@given(CORPUS)
def test_cider_is_between_nothing_and_ten_and_clipping_never_adds(corpus):
    predictions, references = zip(*corpus, strict=True)
    plain, clipped = cider(predictions, references), cider_d(predictions, references)
    assert all(0 <= low <= high + 1e-9 <= 10 + 2e-9 for low, high in zip(clipped.each, plain.each, strict=True))
    assert cider_d([several[0] for several in references], [several[:1] for several in references]).value <= 10 + 1e-9
    assert 0 <= bleu4(predictions, references).value <= 100 + 1e-9


def test_bleu_with_several_references_by_hand():
    """Prediction "the cat sat on the rug", references "the cat sat on a mat" and "on the rug the cat lay down".

    1-grams: the 2, cat, sat, on, rug: 6 of 6. 2-grams: the cat, cat sat, sat on, on the, the rug: 5 of 5.
    3-grams: the cat sat, cat sat on, on the rug of 4: 3. 4-grams: the cat sat on, of 3: 1. The closest reference has
    6 words: no brevity penalty.
    """
    references = [["The cat sat on a mat.", "on the rug, the cat lay down"]]
    found = bleu4(["The cat sat on the rug!"], references)
    assert found.value == pytest.approx(100 * (6 / 6 * 5 / 5 * 3 / 4 * 1 / 3) ** 0.25)
    assert found.signature.startswith("nrefs:2|case:lc|eff:no|tok:none|smooth:exp|version:")
    assert found.signature.endswith("|words:no-punctuation")


def test_bleu_where_pictures_have_unequal_numbers_of_references():
    found = bleu4(["a b c d", "e f g h"], [["a b c d"], ["x", "e f g h"]])
    assert found.value == pytest.approx(100)
    assert found.signature.startswith("nrefs:var|")


SOME = st.lists(st.sampled_from(["a", "b", "Dog", "-", "don't"]), max_size=7).map(" ".join)


@given(st.lists(st.tuples(SOME, SOME, SOME), min_size=1, max_size=5))
def test_bleu_is_sacrebleus(rows):
    predictions, one, other = zip(*rows, strict=True)
    texts = [[" ".join(caption_words(text)) for text in several] for several in (predictions, one, other)]
    wanted = BLEU(lowercase=True, tokenize="none", force=True).corpus_score(texts[0], texts[1:])
    assert bleu4(predictions, list(zip(one, other, strict=True))).value == pytest.approx(wanted.score, abs=1e-9)


@pytest.mark.parametrize(("metric", "megabytes"), [(bleu4, 0.1), (cider, 3.8)])
def test_scoring_many_captions_takes_little_memory(metric, megabytes):
    """BLEU keeps sums; CIDEr the document frequency of each n-gram, with each word once in memory."""
    chance = random.Random(0)
    captions = [" ".join(chance.choices([f"word{number}" for number in range(50)], k=8)) for _ in range(2000)]
    metric(captions[:2], [[caption] for caption in captions[:2]])  # imports and caches
    references = [[caption] for caption in captions]
    tracemalloc.start()
    try:
        metric(captions, references)
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()


def test_exact_match_with_any_reference():
    assert exact_match(["A dog.", "a cat", ""], [["the dog", "a dog"], ["a cow"], ["a"]]) == pytest.approx(1 / 3)
