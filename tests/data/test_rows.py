"""Rows: every one once an epoch, little padding, and everything at its place."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batches import IGNORE_INDEX, DataPosition
from regard.data.rows import MAX_ROWS, RowDataset, RowSplits
from regard.errors import DataError


@dataclass
class Row:
    ids: list[int]
    segment_ids: list[int]


def row(number, length, first=None):
    """A row whose ids say which row and place they are; behind `first` places it is the second text."""
    first = length if first is None else first
    return Row([1 + 100 * number + place for place in range(length)], [0] * first + [1] * (length - first))


def make(lengths, targets=None):
    rows = [row(number, length, length // 2 + 1) for number, length in enumerate(lengths)]
    return RowDataset(rows, np.arange(len(lengths)) if targets is None else targets, pad_id=0)


def mixed(count=500, seed=4):
    return np.random.default_rng(seed).integers(1, 61, count).tolist()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=200), st.integers(16, 600), st.integers(0, 3))
def test_every_row_once_and_at_most_the_budget(lengths, max_tokens, epoch):
    plan = make(lengths).plan(max_tokens=max_tokens, seed=1, epoch=epoch)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for batch in plan:
        assert len(batch) <= MAX_ROWS
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= max_tokens


def test_less_than_a_tenth_is_padding():
    lengths = mixed()
    rows = make(lengths)
    for max_tokens in (512, 2048):
        batches = [rows.collate(batch) for batch in rows.plan(max_tokens=max_tokens, seed=1, epoch=0)]
        positions = sum(batch.ids.numel() for batch in batches)
        assert sum((batch.ids == 0).sum().item() for batch in batches) == positions - sum(lengths)
        assert 1 - sum(lengths) / positions < 0.1


def test_epochs_have_other_orders_and_the_same_epoch_the_same():
    rows = make(mixed())
    plans = [rows.plan(max_tokens=512, seed=seed, epoch=epoch) for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))]
    flat = [np.concatenate(plan).tolist() for plan in plans]
    assert flat[0] == flat[1]
    assert flat[0] != flat[2]
    assert flat[0] != flat[3]


def test_resumed_from_any_position_the_rest_is_the_same():
    data = RowSplits(make(mixed(120)), make([3, 4]))
    an_epoch = data.batches_per_epoch(max_tokens=256, seed=7)
    wanted = list(islice(data.training_batches(max_tokens=256, seed=7, start=DataPosition(0, 0)), 2 * an_epoch + 3))
    assert wanted[an_epoch - 1][0] == DataPosition(0, an_epoch)
    for place in range(0, 2 * an_epoch, 3):
        position = wanted[place][0]
        rest = islice(data.training_batches(max_tokens=256, seed=7, start=position), 3)
        for (_, found), (_, expected) in zip(rest, wanted[place + 1 : place + 4], strict=True):
            assert torch.equal(found.ids, expected.ids)
            assert torch.equal(found.indices, expected.indices)


def test_ids_segments_and_targets_stand_at_their_places():
    rows = RowDataset([row(0, 3), row(1, 5, 2), row(2, 1)], np.array([0.5, -1.0, 2.0], np.float32), pad_id=0)
    batch = rows.collate(np.array([1, 2, 0]))
    assert batch.ids.tolist() == [[101, 102, 103, 104, 105], [201, 0, 0, 0, 0], [1, 2, 3, 0, 0]]
    assert batch.segment_ids.tolist() == [[0, 0, 1, 1, 1], [0] * 5, [0] * 5]
    assert (batch.targets.tolist(), batch.targets.dtype) == ([-1.0, 2.0, 0.5], torch.float32)
    assert (batch.tokens, batch.indices.tolist()) == (3, [1, 2, 0])


def test_a_target_a_piece():
    rows = RowDataset(
        [row(0, 3), row(1, 4)], [[IGNORE_INDEX, 2, IGNORE_INDEX], [IGNORE_INDEX, 0, 1, IGNORE_INDEX]], pad_id=9
    )
    batch = rows.collate(np.array([0, 1]))
    assert batch.targets.tolist() == [[IGNORE_INDEX, 2, IGNORE_INDEX, IGNORE_INDEX], [IGNORE_INDEX, 0, 1, IGNORE_INDEX]]
    assert batch.tokens == 3
    assert batch.ids[0].tolist() == [1, 2, 3, 9]


def test_the_first_so_many_that_are_held_out():
    data = RowSplits(make([3]), make(mixed(50)))
    seen = [index for batch in data.validation_batches(max_tokens=128, most=10) for index in batch.indices.tolist()]
    assert sorted(seen) == list(range(10))
    assert sum(len(batch.indices) for batch in data.validation_batches(max_tokens=128)) == 50


def test_an_empty_side_is_named():
    with pytest.raises(DataError, match="1 training rows and 0 validation rows"):
        RowSplits(make([3]), make([]))


def test_short_rows_make_batches_of_at_most_thirty_two_and_none_is_lost():
    plan = make([3] * 100).plan(max_tokens=2048, seed=1, epoch=0)
    assert [len(batch) for batch in plan] == [25] * 4  # evenly: none is a mere rest
    assert sorted(np.concatenate(plan).tolist()) == list(range(100))
