"""Prompts side by side, with numbers."""

import pytest
import torch

from regard.errors import InputError
from regard.layers.attention import KeysValues
from regard.layers.decoding import PromptState, pad_left, positions_and_mask, prefill_inputs, prompt_document_ids
from regard.layers.kv_cache import KVCache

CPU = torch.device("cpu")


def test_prompts_stand_at_the_right_end_of_their_rows():
    ids, left_padding = pad_left([[5, 6, 7], [8], [9, 10]], CPU)
    assert ids.tolist() == [[5, 6, 7], [0, 0, 8], [0, 9, 10]]
    assert left_padding.tolist() == [0, 2, 1]


def test_prompts_of_one_length_have_no_padding():
    ids, left_padding = pad_left([[5, 6], [7, 8]], CPU)
    assert ids.tolist() == [[5, 6], [7, 8]]
    assert left_padding is None
    assert prompt_document_ids(None, 2) is None
    assert positions_and_mask(None) == (None, None)


def test_the_last_token_of_each_prompt_is_stepped_and_the_others_are_read():
    state, before, position_ids, mask = prefill_inputs([[5, 6, 7], [8], [9, 10]], 4, CPU)
    assert state.first.tolist() == [7, 8, 10]
    assert (len(state.caches), state.length, state.left_padding.tolist()) == (4, 0, [0, 2, 1])
    assert before.tolist() == [[5, 6], [0, 0], [0, 9]]
    assert (position_ids.shape, mask.shape) == ((3, 2), (3, 1, 2, 2))
    state, before, position_ids, mask = prefill_inputs([[5], [6]], 4, CPU)
    assert (before.shape, position_ids, mask, state.left_padding) == ((2, 0), None, None, None)


@pytest.mark.parametrize(("prompts", "number"), [([[]], 1), ([[5], [], [6, 7]], 2)])
def test_an_empty_prompt_is_named(prompts, number):
    with pytest.raises(InputError, match=f"prompt {number} has no tokens, wanted at least one, such as bos_id"):
        pad_left(prompts, CPU)


def test_segments_are_0_where_a_row_is_blank():
    left_padding = torch.tensor([0, 2, 3])
    assert prompt_document_ids(left_padding, 3).tolist() == [[1, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert prompt_document_ids(left_padding, 2).tolist() == [[1, 1], [0, 0], [0, 0]]


def test_places_and_mask_of_segments():
    position_ids, mask = positions_and_mask(torch.tensor([[0, 1, 1, 2]]))
    assert position_ids.tolist() == [[0, 0, 1, 0]]
    assert mask.int().tolist() == [[[[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]]]


def state_of(left_padding, length):
    """A state after `length` columns; each row's keys are its number."""
    cache = KVCache()
    if length:
        rows = torch.arange(2.0)[:, None, None, None].expand(-1, 1, length, 2)
        cache.append(KeysValues(rows, -rows))
    return PromptState(torch.tensor([8, 9]), [cache], left_padding)


def test_the_next_token_looks_at_its_own_text_and_itself():
    state = state_of(torch.tensor([0, 2]), 3)
    assert state.length == 3
    assert state.position_ids().tolist() == [[3], [1]]
    assert state.mask().int().tolist() == [[[[1, 1, 1, 1]]], [[[0, 0, 1, 1]]]]


def test_the_first_token_of_a_text_looks_at_itself():
    state = state_of(torch.tensor([1, 2]), 2)
    assert state.position_ids().tolist() == [[1], [0]]
    assert state.mask().int().tolist() == [[[[0, 1, 1]]], [[[0, 0, 1]]]]


@pytest.mark.parametrize("length", [0, 3])
def test_without_padding_there_are_no_positions_and_no_mask(length):
    state = state_of(None, length)
    assert (state.length, state.position_ids(), state.mask()) == (length, None, None)


@pytest.mark.parametrize("rows", [[1, 1, 0], [[1, 1], [0, 0]]])
def test_reordered_rows_take_all_they_have_with_them(rows):
    state = state_of(torch.tensor([0, 2]), 3)
    state.reorder(torch.tensor(rows))
    order = torch.tensor(rows).flatten()
    assert state.first.tolist() == (order + 8).tolist()
    assert state.left_padding.tolist() == (order * 2).tolist()
    assert state.caches[0].contents.key[:, 0, 0, 0].tolist() == order.tolist()
