"""Batches: every example once, within the budget, in an order that is the same for ever and can be resumed."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.data.batches import (
    PairBatch,
    Position,
    bucketed,
    collate_packed,
    collate_padded,
    endless,
    packed,
    padding_share,
    shuffled,
)
from regard.errors import ConfigError, DataError

BEGIN, END, PAD = 1, 2, 0
LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60).map(
    lambda pairs: np.array(pairs, dtype=np.int64).reshape(-1, 2).T
)


def like_a_corpus(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sentence lengths as in everyday sentences, and translations that are as long up to a quarter or so."""
    draw = np.random.default_rng(0)
    source = draw.lognormal(np.log(8), 0.5, count)
    return (1 + source).astype(int), (1 + source * draw.lognormal(0, 0.2, count)).astype(int)


def flat(plan) -> list[int]:
    return [int(i) for batch in plan for row in batch for i in np.atleast_1d(row)]


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 5))
def test_bucketed_has_every_example_once_within_the_budget(lengths, max_tokens, seed):
    source, target = lengths
    plan = bucketed(source, target, max_tokens=max_tokens, seed=seed, epoch=3)
    assert sorted(flat(plan)) == list(range(len(source)))
    for batch in plan:
        padded = len(batch) * (source[batch].max() + 1 + target[batch].max() + 1)
        assert padded <= max_tokens or len(batch) == 1


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 5))
def test_packed_has_every_example_once_within_rows_and_budget(lengths, max_tokens, seed):
    source, target = lengths
    plan = packed(source, target, max_tokens=max_tokens, row=41, seed=seed, epoch=3)
    assert sorted(flat(plan)) == list(range(len(source)))
    for batch in plan:
        assert len(batch) <= max(1, max_tokens // 82)
        for row in batch:
            assert (source[row] + 1).sum() <= 41
            assert (target[row] + 1).sum() <= 41


def test_packed_row_must_hold_the_longest():
    with pytest.raises(ConfigError, match="got 10 positions, wanted at least 13"):
        packed(np.array([3]), np.array([12]), max_tokens=100, row=10, seed=0, epoch=0)


@pytest.mark.parametrize("plan", [bucketed, lambda *a, **k: packed(*a, row=64, **k)])
def test_order_depends_on_seed_and_epoch_alone(plan):
    lengths = [np.minimum(side, 60) for side in like_a_corpus(500)]
    first = flat(plan(*lengths, max_tokens=512, seed=1, epoch=0))
    assert first == flat(plan(*lengths, max_tokens=512, seed=1, epoch=0))
    assert first != flat(plan(*lengths, max_tokens=512, seed=2, epoch=0))
    assert first != flat(plan(*lengths, max_tokens=512, seed=1, epoch=1))


def test_order_is_the_same_for_ever():
    assert shuffled(10, 1, 2, 3).tolist() == [1, 8, 2, 4, 6, 5, 0, 9, 7, 3]


def test_batches_come_in_no_order_of_length():
    source, target = like_a_corpus(20_000)
    plan = bucketed(source, target, max_tokens=2048, seed=0, epoch=0)
    longest = np.array([target[batch].max() for batch in plan], dtype=float)
    assert abs(np.corrcoef(longest[:-1], longest[1:])[0, 1]) < 0.3


def test_little_padding():
    source, target = like_a_corpus(50_000)
    plan = bucketed(source, target, max_tokens=4096, seed=0, epoch=0)
    assert padding_share(plan, source, target) < 0.09
    rows = packed(source, target, max_tokens=4096, row=128, seed=0, epoch=0)
    assert padding_share(rows, source, target, row=128) < 0.05


def test_batches_are_full():
    source, target = like_a_corpus(50_000)
    plan = bucketed(source, target, max_tokens=4096, seed=0, epoch=0)
    padded = [len(batch) * (source[batch].max() + target[batch].max() + 2) for batch in plan]
    assert np.mean(padded) > 0.97 * 4096


def test_padding_share_by_hand():
    source, target = np.array([1, 3, 2]), np.array([2, 2, 5])
    # batch {0, 1}: 2 × (4 + 3) = 14 positions, 2 + 4 + 3 + 3 = 12 used; batch {2}: 9 of 9
    assert padding_share([np.array([0, 1]), np.array([2])], source, target) == pytest.approx(2 / 23)
    assert padding_share([[[0, 1]], [[2]]], source, target, row=10) == pytest.approx(19 / 40)


def tensor(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


SENTENCES = [(np.array([10, 11], np.uint16), np.array([20], np.uint16)), ([12], [21, 22, 23]), ([13], [])]


def test_collate_padded():
    batch = collate_padded(SENTENCES, np.array([1, 0]), BEGIN, END, PAD)
    assert_close(batch.source, tensor([12, END, PAD], [10, 11, END]))
    assert_close(batch.target_in, tensor([BEGIN, 21, 22, 23], [BEGIN, 20, PAD, PAD]))
    assert_close(batch.target_out, tensor([21, 22, 23, END], [20, END, PAD, PAD]))
    assert batch.source_segment_ids is None
    assert batch.target_segment_ids is None
    assert batch.tokens == 6 == int((batch.target_out != PAD).sum())
    assert batch.indices.tolist() == [1, 0]


def test_collate_an_empty_target():
    batch = collate_padded(SENTENCES, [2], BEGIN, END, PAD)
    assert_close(batch.target_in, tensor([BEGIN]))
    assert_close(batch.target_out, tensor([END]))


def test_collate_packed():
    batch = collate_packed(SENTENCES, [[1, 0], [2]], BEGIN, END, PAD, row=6)
    assert_close(batch.source, tensor([12, END, 10, 11, END, PAD], [13, END, PAD, PAD, PAD, PAD]))
    assert_close(batch.source_segment_ids, tensor([1, 1, 2, 2, 2, 0], [1, 1, 0, 0, 0, 0]))
    assert_close(batch.target_in, tensor([BEGIN, 21, 22, 23, BEGIN, 20], [BEGIN, *[PAD] * 5]))
    assert_close(batch.target_out, tensor([21, 22, 23, END, 20, END], [END, *[PAD] * 5]))
    assert_close(batch.target_segment_ids, tensor([1, 1, 1, 1, 2, 2], [1, 0, 0, 0, 0, 0]))
    assert batch.tokens == 7
    assert batch.indices.tolist() == [1, 0, 2]


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.lists(st.integers(3, 99), max_size=6)] * 2), min_size=1, max_size=20))
def test_packing_holds_the_same_sentences_as_padding(pairs):
    source, target = (np.array([len(pair[side]) for pair in pairs]) for side in (0, 1))
    (rows,) = packed(source, target, max_tokens=10**6, row=16, seed=0, epoch=0)
    batch = collate_packed(pairs, rows, BEGIN, END, PAD, row=16)
    for number, row in enumerate(rows):
        for place, example in enumerate(row, 1):
            alone = collate_padded(pairs, [example], BEGIN, END, PAD)
            mine = batch.target_segment_ids[number] == place
            assert_close(batch.source[number][batch.source_segment_ids[number] == place], alone.source[0])
            assert_close(batch.target_in[number][mine], alone.target_in[0])
            assert_close(batch.target_out[number][mine], alone.target_out[0])
    assert batch.tokens == int(target.sum()) + len(pairs)


def test_a_batch_moves_as_one():
    batch = collate_packed(SENTENCES, [[1, 0], [2]], BEGIN, END, PAD, row=6).to("meta")
    assert isinstance(batch, PairBatch)
    assert {value.device.type for value in vars(batch).values() if isinstance(value, torch.Tensor)} == {"meta"}
    assert collate_padded(SENTENCES, [0], BEGIN, END, PAD).to("meta").source_segment_ids is None


def numbered(epoch: int) -> list[str]:
    return [f"{epoch}.{index}" for index in range(2 + epoch % 3)]


def test_endless_goes_through_the_epochs():
    items = [item for _, item in islice(endless(numbered, Position(0, 0)), 10)]
    assert items == ["0.0", "0.1", "1.0", "1.1", "1.2", "2.0", "2.1", "2.2", "2.3", "3.0"]


@settings(deadline=None)
@given(st.integers(1, 20))
def test_resumed_anywhere_it_goes_on_as_if_nothing_was(stop):
    whole = list(islice(endless(numbered, Position(0, 0)), 30))
    saved = whole[stop - 1][0]
    assert list(islice(endless(numbered, saved), 30 - stop)) == whole[stop:]


def test_real_plans_resume_too():
    source, target = like_a_corpus(300)

    def plan(epoch: int) -> list[np.ndarray]:
        return bucketed(source, target, max_tokens=512, seed=7, epoch=epoch)

    whole = [(at, b.tolist()) for at, b in islice(endless(plan, Position(0, 0)), 40)]
    assert {at.epoch for at, _ in whole} > {0, 1}
    for stop in (1, 13, 39):
        resumed = islice(endless(plan, whole[stop - 1][0]), 40 - stop)
        assert [(at, b.tolist()) for at, b in resumed] == whole[stop:]


def test_endless_refuses_what_would_never_end_well():
    with pytest.raises(DataError, match="no batches"):
        next(endless(lambda epoch: [], Position(0, 0)))
    with pytest.raises(DataError, match="batch 9 of epoch 0, which has 2: the data or settings changed"):
        next(endless(numbered, Position(0, 9)))
