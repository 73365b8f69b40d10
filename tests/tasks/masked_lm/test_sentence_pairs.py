"""Rows of sentences: half of the pairs true, none of one document when it is not, every piece of a text once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.stores.documents import TokenizedDocuments
from regard.tasks.masked_lm.sentence_pairs import pair_rows, parts, row_lengths, text_rows

LENGTHS = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=8), min_size=2, max_size=8)


def corpus(lengths) -> TokenizedDocuments:
    """Documents whose sentences have these lengths; the ids count the pieces."""
    ids = iter(range(10**9))
    return TokenizedDocuments.of([[[next(ids) for _ in range(length)] for length in one] for one in lengths])


def many(documents=400, most=9, longest=14, seed=0) -> TokenizedDocuments:
    chance = np.random.default_rng(seed)
    return corpus([chance.integers(1, longest, chance.integers(1, most)).tolist() for _ in range(documents)])


def document_of(documents: TokenizedDocuments, places: np.ndarray) -> np.ndarray:
    begins = documents.sentences[documents.documents]
    return np.searchsorted(begins, places, side="right") - 1


def check_pairs(documents: TokenizedDocuments, rows: np.ndarray, context: int) -> None:
    first, first_stop, second, second_stop, other = rows.T
    assert (first < first_stop).all()
    assert (second < second_stop).all()
    assert (row_lengths(rows, pairs=True) <= context).all()
    of_first, of_second = (document_of(documents, places) for places in (first, second))
    for start, stop in ((first, first_stop), (second, second_stop)):
        assert np.array_equal(document_of(documents, start), document_of(documents, stop - 1))
    assert np.array_equal(of_first == of_second, other == 0)
    assert (second[other == 0] >= first_stop[other == 0]).all()


@given(lengths=LENGTHS, context=st.integers(8, 40), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_pairs_are_of_one_document_when_true_and_of_two_when_not(lengths, context, seed):
    documents = corpus(lengths)
    rows = pair_rows(documents, range(len(documents)), context, (seed,))
    check_pairs(documents, rows, context)
    true = rows[rows[:, 4] == 0]
    uncut = true[row_lengths(true, pairs=True) < context]
    assert np.array_equal(uncut[:, 1], uncut[:, 2]), "what follows follows at once"
    assert np.isin(uncut[:, [0, 1, 3]], documents.sentences).all(), "whole sentences"
    assert (len(rows) > 0) == any(len(one) > 1 for one in lengths)


@pytest.mark.parametrize("most", [3, 9, 60], ids=["short documents", "middling", "long"])
def test_half_of_the_pairs_are_true(most):
    documents = many(3000 if most < 60 else 400, most)
    rows = pair_rows(documents, range(len(documents)), 32, (1, 0))
    assert len(rows) > 800
    assert abs(rows[:, 4].mean() - 0.5) < 4 * 0.5 / np.sqrt(len(rows))


def test_another_segment_comes_from_anywhere():
    documents = corpus([[4] * 6] * 12)
    rows = np.concatenate([pair_rows(documents, range(12), 24, (seed,)) for seed in range(200)])
    rows = rows[rows[:, 4] == 1]
    assert set(document_of(documents, rows[:, 2]).tolist()) == set(range(12))
    assert len(set((rows[:, 2] - rows[:, 2] % 4).tolist())) == 72, "from every sentence"


def test_one_row_in_ten_is_short():
    documents = corpus([[1] * 30_000, [1] * 30_000])
    for make, pairs in ((pair_rows, True), (text_rows, False)):
        lengths = row_lengths(make(documents, range(2), 40, (3,)), pairs)[:-2]
        short = (lengths < 40).mean()
        assert abs(short - 0.1 * 36 / 37) < 4 * np.sqrt(0.09 / len(lengths)) + 1e-3
        assert lengths[lengths < 40].min() < 8


@given(lengths=LENGTHS, context=st.integers(8, 40), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_rows_of_text_have_every_piece_once(lengths, context, seed):
    documents = corpus(lengths)
    rows = text_rows(documents, range(len(documents)), context, (seed,))
    assert np.array_equal(np.concatenate([np.arange(row[0], row[1]) for row in rows]), documents.ids)
    assert np.array_equal(document_of(documents, rows[:, 0]), document_of(documents, rows[:, 1] - 1))
    assert (row_lengths(rows, pairs=False) <= context).all()
    assert (rows[:, 2] == rows[:, 3]).all()
    inside = ~np.isin(rows[:, 1], documents.sentences)  # a row that ends inside a sentence has nothing else in it
    for start, stop in rows[inside, :2]:
        assert not np.isin(np.arange(start + 1, stop), documents.sentences).any()


def test_rows_depend_on_their_numbers_alone():
    documents = many()
    one, again, other = (pair_rows(documents, range(len(documents)), 32, (1, epoch, 4)) for epoch in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one[:50], other[:50])


def test_the_rows_are_pinned():
    """For ever: a run goes on from its place, also with a newer numpy."""
    rows = pair_rows(corpus([[3, 4, 5], [6, 2]]), range(2), 12, (1, 0, 4))
    assert rows.tolist() == [[0, 3, 5, 11, 0], [12, 17, 3, 7, 1]]


@given(lengths=LENGTHS, size=st.integers(1, 200))
def test_parts_are_all_documents(lengths, size):
    documents = corpus(lengths)
    found = parts(documents, size)
    assert [number for part in found for number in part] == list(range(len(documents)))
    assert all(len(part) for part in found)
    if size >= len(documents.ids):
        assert len(found) == 1


def test_what_gave_way_is_still_to_come():
    documents = corpus([[1] * 60, [1] * 60])
    rows = pair_rows(documents, range(2), 12, (5,))
    checked = 0
    for row, following in pairwise(rows):
        if row[4] and document_of(documents, row[:1]) == document_of(documents, following[:1]):
            assert following[0] == row[1]
            checked += 1
    assert checked > 3
