"""Batches: every example once, at most max_tokens, in a fixed order that can be resumed."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.data.batches import (
    DataPosition,
    PairBatch,
    bucket_by_length,
    collate_padded,
    iterate_epochs,
    padding_fraction,
    shuffle_indices,
)
from regard.errors import DataError

BOS, EOS, PAD = 1, 2, 0
LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60).map(
    lambda pairs: np.array(pairs, dtype=np.int64).reshape(-1, 2).T
)


def like_a_corpus(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of everyday sentences, and of translations that differ by about a quarter."""
    draw = np.random.default_rng(0)
    source = draw.lognormal(np.log(8), 0.5, count)
    return (1 + source).astype(int), (1 + source * draw.lognormal(0, 0.2, count)).astype(int)


def flat(plan) -> list[int]:
    return [int(i) for batch in plan for row in batch for i in np.atleast_1d(row)]


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 5))
def test_buckets_have_every_example_once_within_max_tokens(lengths, max_tokens, seed):
    source, target = lengths
    plan = bucket_by_length(source, target, max_tokens=max_tokens, seed=seed, epoch=3)
    assert sorted(flat(plan)) == list(range(len(source)))
    for batch in plan:
        padded = len(batch) * (source[batch].max() + 1 + target[batch].max() + 1)
        assert padded <= max_tokens or len(batch) == 1


def test_order_depends_on_seed_and_epoch_alone():
    plan, lengths = bucket_by_length, like_a_corpus(500)
    first = flat(plan(*lengths, max_tokens=512, seed=1, epoch=0))
    assert first == flat(plan(*lengths, max_tokens=512, seed=1, epoch=0))
    assert first != flat(plan(*lengths, max_tokens=512, seed=2, epoch=0))
    assert first != flat(plan(*lengths, max_tokens=512, seed=1, epoch=1))


def test_order_is_pinned():
    assert shuffle_indices(10, 1, 2, 3).tolist() == [1, 8, 2, 4, 6, 5, 0, 9, 7, 3]


def test_batches_are_not_ordered_by_length():
    source, target = like_a_corpus(20_000)
    plan = bucket_by_length(source, target, max_tokens=2048, seed=0, epoch=0)
    longest = np.array([target[batch].max() for batch in plan], dtype=float)
    assert abs(np.corrcoef(longest[:-1], longest[1:])[0, 1]) < 0.3


def test_little_padding():
    source, target = like_a_corpus(50_000)
    plan = bucket_by_length(source, target, max_tokens=4096, seed=0, epoch=0)
    assert padding_fraction(plan, source, target) < 0.09


def test_batches_are_full():
    source, target = like_a_corpus(50_000)
    plan = bucket_by_length(source, target, max_tokens=4096, seed=0, epoch=0)
    padded = [len(batch) * (source[batch].max() + target[batch].max() + 2) for batch in plan]
    assert np.mean(padded) > 0.97 * 4096


def test_padding_fraction_by_hand():
    source, target = np.array([1, 3, 2]), np.array([2, 2, 5])
    # batch {0, 1}: 2 × (4 + 3) = 14 positions, 2 + 4 + 3 + 3 = 12 used; batch {2}: 9 of 9
    assert padding_fraction([np.array([0, 1]), np.array([2])], source, target) == pytest.approx(2 / 23)


def tensor(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


SENTENCES = [(np.array([10, 11], np.uint16), np.array([20], np.uint16)), ([12], [21, 22, 23]), ([13], [])]


def test_collate_padded():
    batch = collate_padded(SENTENCES, np.array([1, 0]), BOS, EOS, PAD)
    assert_close(batch.source, tensor([12, EOS, PAD], [10, 11, EOS]))
    assert_close(batch.target_in, tensor([BOS, 21, 22, 23], [BOS, 20, PAD, PAD]))
    assert_close(batch.target_out, tensor([21, 22, 23, EOS], [20, EOS, PAD, PAD]))
    assert batch.tokens == 6 == int((batch.target_out != PAD).sum())
    assert batch.indices.tolist() == [1, 0]


def test_collate_an_empty_target():
    batch = collate_padded(SENTENCES, [2], BOS, EOS, PAD)
    assert_close(batch.target_in, tensor([BOS]))
    assert_close(batch.target_out, tensor([EOS]))


def test_a_batch_moves_as_one():
    batch = collate_padded(SENTENCES, [1, 0], BOS, EOS, PAD).to("meta")
    assert isinstance(batch, PairBatch)
    assert {value.device.type for value in vars(batch).values() if isinstance(value, torch.Tensor)} == {"meta"}


def numbered(epoch: int) -> list[str]:
    return [f"{epoch}.{index}" for index in range(2 + epoch % 3)]


def test_epochs_follow_each_other():
    items = [item for _, item in islice(iterate_epochs(numbered, DataPosition(0, 0)), 10)]
    assert items == ["0.0", "0.1", "1.0", "1.1", "1.2", "2.0", "2.1", "2.2", "2.3", "3.0"]


@settings(deadline=None)
@given(st.integers(1, 20))
def test_resuming_anywhere_gives_the_same_batches(stop):
    whole = list(islice(iterate_epochs(numbered, DataPosition(0, 0)), 30))
    saved = whole[stop - 1][0]
    assert list(islice(iterate_epochs(numbered, saved), 30 - stop)) == whole[stop:]


def test_real_plans_resume_too():
    source, target = like_a_corpus(300)

    def plan(epoch: int) -> list[np.ndarray]:
        return bucket_by_length(source, target, max_tokens=512, seed=7, epoch=epoch)

    whole = [(at, b.tolist()) for at, b in islice(iterate_epochs(plan, DataPosition(0, 0)), 40)]
    assert {at.epoch for at, _ in whole} > {0, 1}
    for stop in (1, 13, 39):
        resumed = islice(iterate_epochs(plan, whole[stop - 1][0]), 40 - stop)
        assert [(at, b.tolist()) for at, b in resumed] == whole[stop:]


def test_no_batches_and_a_position_beyond_the_epoch_are_errors():
    with pytest.raises(DataError, match="no batches"):
        next(iterate_epochs(lambda epoch: [], DataPosition(0, 0)))
    with pytest.raises(DataError, match="batch 9 of epoch 0, which has 2: the data or settings changed"):
        next(iterate_epochs(numbered, DataPosition(0, 9)))
