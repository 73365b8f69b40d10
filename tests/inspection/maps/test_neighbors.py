"""Neighbors, analogies and agreement, held against numbers worked out by hand and against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.readers.word_vectors import WordVectors
from regard.errors import InputError
from regard.inspection.maps.neighbors import agreement, analogy, compare, nearest, similar_spellings

# Two axes: who rules, and who is a woman; the lengths differ, so that cosine and distance disagree.
ROYAL = WordVectors(
    ["man", "woman", "king", "queen", "apple", "far-queen"],
    np.array([[1, 0, 1], [1, 1, 1], [4, 0, 1], [4, 1, 1], [0, 0, 9], [40, 10, 10]], np.float32),
)


def randomly(seed, words=30, width=5):
    chance = np.random.default_rng(seed)
    return WordVectors([f"w{n}" for n in range(words)], chance.normal(size=(words, width)).astype(np.float32))


def test_neighbors_by_cosine_and_by_distance_are_not_the_same():
    by_angle = nearest(ROYAL, "queen", count=3)
    by_place = nearest(ROYAL, "queen", count=3, by="euclidean")
    assert [one.word for one in by_angle] == ["far-queen", "king", "man"]
    assert [one.word for one in by_place] == ["king", "woman", "man"]
    assert by_place[0].distance == 1.0
    assert by_place[0].cosine == pytest.approx(17 / math.sqrt(18 * 17))
    assert by_angle[0].cosine == pytest.approx(180 / math.sqrt(18 * 1800))


@given(seed=st.integers(0, 1000), by=st.sampled_from(["cosine", "euclidean"]))
def test_neighbors_are_what_a_plain_loop_finds(seed, by):
    vectors = randomly(seed)
    here = vectors.matrix[7].astype(float)

    def far(word):
        other = vectors.matrix[vectors.rows[word]].astype(float)
        cosine = here @ other / math.sqrt(here @ here) / math.sqrt(other @ other)
        return -cosine if by == "cosine" else math.dist(here, other)

    wanted = sorted((word for word in vectors.words if word != "w7"), key=far)[:6]
    assert [one.word for one in nearest(vectors, "w7", count=6, by=by)] == wanted


def test_a_vector_has_neighbors_too_and_none_is_left_out():
    assert nearest(ROYAL, np.array([4, 1, 1]), count=1)[0].word == "queen"
    assert nearest(ROYAL, np.array([4, 1, 1]), count=1)[0].distance == 0.0


def test_all_there_are_is_the_most_one_gets():
    assert len(nearest(ROYAL, "king", count=100)) == 5


def test_zeros_have_the_cosine_zero():
    vectors = WordVectors(["nothing", "a"], np.array([[0, 0], [3, 4]], np.float32))
    found = compare(vectors, "nothing", "a")
    assert (found.cosine, found.distance) == (0.0, 5.0)
    assert nearest(vectors, "a")[0].cosine == 0.0


def test_large_numbers_do_not_overflow():
    vectors = WordVectors(["a", "b"], np.array([[1e30, 0], [1e30, 1e30]], np.float32))
    assert compare(vectors, "a", "b").cosine == pytest.approx(math.sqrt(0.5))


def test_man_is_to_woman_as_king_is_to_queen():
    vectors = WordVectors(ROYAL.words[:5], ROYAL.matrix[:5])
    found = analogy(vectors, "man", "woman", "king", count=2)
    assert found[0].word == "queen"
    assert not {"man", "woman", "king"} & {one.word for one in found}


def test_an_analogy_is_of_vectors_of_length_one():
    vectors = randomly(4)
    units = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    target = units[1] - units[0] + units[2]
    scores = units @ target / np.linalg.norm(target)
    wanted = [f"w{n}" for n in np.argsort(-scores) if n not in (0, 1, 2)][:5]
    found = analogy(vectors, "w0", "w1", "w2", count=5)
    assert [one.word for one in found] == wanted
    assert found[0].cosine == pytest.approx(scores[vectors.rows[wanted[0]]], abs=1e-6)
    longer = WordVectors(vectors.words, vectors.matrix * np.arange(1, 31, dtype=np.float32)[:, None])
    assert [one.word for one in analogy(longer, "w0", "w1", "w2", count=5)] == wanted


def test_comparing_is_the_same_both_ways():
    one, other = compare(ROYAL, "king", "queen"), compare(ROYAL, "queen", "king")
    assert (one.word, other.word) == ("queen", "king")
    assert (one.cosine, one.distance) == pytest.approx((other.cosine, other.distance), abs=1e-6)


def test_a_turned_and_stretched_table_agrees_with_itself():
    vectors = randomly(1)
    turned = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0].astype(np.float32)
    order = np.random.default_rng(3).permutation(30)
    other = WordVectors(
        [f"w{n}" for n in order] + ["only here"], np.vstack([7 * vectors.matrix[order] @ turned, np.ones(5)])
    )
    found = agreement(vectors, other)
    assert found.words == 30
    assert found.correlation == pytest.approx(1, abs=1e-5)
    assert abs(agreement(vectors, randomly(9, width=8)).correlation) < 0.3


def test_agreement_is_the_correlation_of_the_cosines():
    one, other = randomly(1, words=4), randomly(2, words=4, width=3)
    pairs = [(a, b) for a in range(4) for b in range(a)]
    cosines = [[compare(v, f"w{a}", f"w{b}").cosine for a, b in pairs] for v in (one, other)]
    assert agreement(one, other).correlation == pytest.approx(np.corrcoef(*cosines)[0, 1], abs=1e-5)


def test_too_little_to_compare_is_said():
    with pytest.raises(InputError, match="share 2 words; wanted 3 or more"):
        agreement(randomly(1), randomly(2, words=2))
    alike = WordVectors(["w0", "w1", "w2"], np.ones((3, 2), np.float32))
    with pytest.raises(InputError, match="nothing to compare"):
        agreement(alike, alike)


def test_an_unknown_word_is_said_with_near_spellings():
    with pytest.raises(InputError, match=r"'quene' is not among the 6 words; did you mean queen\?"):
        nearest(ROYAL, "quene")
    with pytest.raises(InputError, match=r"did you mean king\?"):
        analogy(ROYAL, "man", "woman", "King")
    with pytest.raises(InputError, match="none has a similar spelling"):
        compare(ROYAL, "man", "zyxwvu")


def test_other_letters_come_first():
    assert similar_spellings("paris", ["pairs", "Paris", "PARIS", "parts"])[:2] == ["Paris", "PARIS"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"count": 0}, "0 neighbors"), ({"by": "manhattan"}, "wanted cosine or euclidean")],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        nearest(ROYAL, "king", **options)
    with pytest.raises(InputError, match="the width of the others"):
        nearest(ROYAL, np.zeros(4))
