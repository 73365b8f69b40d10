"""Masks: True = may look."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.layers import masks


def test_causal_is_the_lower_triangle():
    assert masks.causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_causal_with_more_keys_than_queries_puts_the_queries_last():
    assert masks.causal_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]


def test_padding_hides_the_symbol_from_every_query():
    mask = masks.padding_mask(torch.tensor([[5, 6, 0], [7, 0, 0]]), 0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_segments_make_blocks_and_padding_sees_and_shows_nothing():
    document_ids = torch.tensor([[1, 1, 2, 0]])
    assert masks.same_document(document_ids, document_ids)[0, 0].int().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
    ]


def test_both_is_and_and_none_allows_everything():
    one, other = masks.causal_mask(3), torch.tensor([True, False, True])
    assert masks.combine(None, None) is None
    assert masks.combine(one, None) is one
    assert masks.combine(None, other) is other
    assert masks.combine(one, other).int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 3))
def test_places_count_from_zero_in_every_sentence(lengths, padding):
    document_ids = [number for number, length in enumerate(lengths, 1) for _ in range(length)] + [0] * padding
    wanted = [place for length in lengths for place in range(length)]
    assert masks.position_ids(torch.tensor([document_ids]))[0, : len(wanted)].tolist() == wanted


def test_texts_behind_each_other_see_themselves_alone():
    texts = masks.Varlen([2, 1])
    assert texts.cu_seqlens.tolist() == [0, 2, 3]
    assert texts.document_ids.tolist() == [[1, 1, 2]]
    assert texts.mask[0, 0].int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
