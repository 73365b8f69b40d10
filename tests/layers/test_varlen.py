"""Encoding without padding: each sequence as if it were alone, and padded where that is not faster."""

import pytest
import torch

from regard import ops
from regard.layers.tap import Tap, taps
from regard.layers.varlen import batches_of, encode_unpadded, unpadded_is_faster
from tests.ops.forms import needs_kernels

IDS = torch.tensor([[5, 6, 7], [8, 0, 0], [9, 4, 0]])
MASK = (IDS != 0)[:, None, None]


def encoder():
    return torch.nn.Sequential(torch.nn.Linear(2, 2), Tap())


def recorded(calls):
    def encode(ids, position_ids, mask):
        calls.append((ids.tolist(), None if position_ids is None else position_ids.tolist(), mask))
        return ids[..., None].float().expand(*ids.shape, 2)

    return encode


@needs_kernels
@pytest.mark.parametrize(
    ("max_tokens", "rows", "position_ids"),
    [
        (2048, [[5, 6, 7, 8, 9, 4]], [[0, 1, 2, 0, 0, 1]]),
        (3, [[5, 6, 7], [8, 9, 4]], [[0, 1, 2], [0, 0, 1]]),
        (1, [[5, 6, 7], [8], [9, 4]], [[0, 1, 2], [0], [0, 1]]),
    ],
)
@torch.no_grad()
def test_sequences_are_concatenated(max_tokens, rows, position_ids, monkeypatch):
    monkeypatch.setattr("regard.layers.varlen.MAX_TOKENS", max_tokens)
    calls = []
    found = encode_unpadded(recorded(calls), IDS, MASK, encoder=encoder(), head_width=16)
    assert [ids[0] for ids, _, _ in calls] == rows
    assert [positions[0] for _, positions, _ in calls] == position_ids
    assert [length for _, _, mask in calls for length in mask.lengths] == [3, 1, 2]
    assert found.tolist() == IDS[..., None].float().expand(3, 3, 2).tolist()


def padded(module, head_width=16):
    calls = []
    encode_unpadded(recorded(calls), IDS, MASK, encoder=module, head_width=head_width)
    assert unpadded_is_faster(module, head_width) == (calls[0][1] is not None)
    return calls[0][1] is None


def test_padding_stays_where_it_is_needed_or_nothing_is_gained():
    assert padded(encoder())  # gradients
    with torch.no_grad():
        assert padded(encoder(), head_width=24)
        assert padded(encoder().double())
        with ops.disabled():
            assert padded(encoder())
        watched = encoder()
        stop = next(iter(taps(watched).values())).watch(lambda value: None)
        assert padded(watched)
        stop()
        assert padded(encoder()) == (ops.why_disabled() is not None)


@torch.no_grad()
def test_an_empty_batch_is_encoded_as_it_is():
    found = encode_unpadded(recorded([]), IDS[:0], MASK[:0], encoder=encoder(), head_width=16)
    assert found.shape == (0, 3, 2)


def test_batches_have_at_most_so_many_tokens():
    assert [(rows.start, rows.stop) for rows in batches_of([3, 4, 1, 9, 1], 8)] == [(0, 3), (3, 4), (4, 5)]
    assert list(batches_of([], 8)) == []
