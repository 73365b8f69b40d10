"""Masks: the shares of the paper, chance that depends on nothing but its numbers, whole words or none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regard.config import override
from regard.data.batches import IGNORE_INDEX
from regard.data.masking import NO_WORD, MaskingConfig, MaskingVocab, mask_row
from regard.errors import ConfigError

SIZE = 50
CONTINUATION = np.arange(SIZE) % 3 == 2  # 5, 8, 11 and so on go on inside a word
TABLE = MaskingVocab(
    pad_id=0, unk_id=1, bos_id=2, eos_id=3, mask_id=4, is_continuation=CONTINUATION & (np.arange(SIZE) > 4)
)
ROW = 100
ROWS = 2500


def rows(config: MaskingConfig, count: int = ROWS, epoch: int = 0, ids: np.ndarray | None = None):
    """Rows of pieces, between their symbols, and what became of them: (ids, shown, targets), each (count, ROW)."""
    given_ids = np.tile(np.r_[2, 5 + np.arange(ROW - 4) % (SIZE - 5), 3, 0, 0], (count, 1)) if ids is None else ids
    found = [
        mask_row(row, TABLE.word_ids(row), config, TABLE, (7, epoch, index, 4)) for index, row in enumerate(given_ids)
    ]
    return given_ids, np.stack([one.ids for one in found]), np.stack([one.targets for one in found])


@pytest.fixture(scope="module")
def many():
    return rows(MaskingConfig())


def within(count: int, of: int, share: float, errors: float = 4.0) -> bool:
    return abs(count / of - share) < errors * np.sqrt(share * (1 - share) / of)


def test_the_shares_are_those_of_the_paper(many):
    ids, shown, targets = many
    words = ids > 4
    asked = targets != IGNORE_INDEX
    assert words.sum() >= 200_000
    assert not asked[~words].any()
    assert (shown[~asked] == ids[~asked]).all()
    assert (targets[asked] == ids[asked]).all()
    assert within(asked.sum(), words.sum(), 0.15)
    assert within((shown[asked] == 4).sum(), asked.sum(), 0.8)
    # A piece drawn at random is the one that stood there once in 45.
    same = 0.1 / (SIZE - 5)
    assert within((shown[asked] == ids[asked]).sum(), asked.sum(), 0.1 + same)
    assert within(((shown != ids) & (shown != 4))[asked].sum(), asked.sum(), 0.1 - same)


def test_other_shares():
    ids, shown, targets = rows(MaskingConfig(share=0.4, masked=0.2, replaced=0.3, kept=0.5))
    asked = targets != IGNORE_INDEX
    assert within(asked.sum(), (ids > 4).sum(), 0.4)
    assert within((shown[asked] == 4).sum(), asked.sum(), 0.2)
    assert within((shown[asked] == ids[asked]).sum(), asked.sum(), 0.5 + 0.3 / (SIZE - 5))


def likely(table: np.ndarray) -> bool:
    return stats.chi2_contingency(table).pvalue > 1e-4


def test_a_choice_depends_on_no_other_and_on_no_place(many):
    _, _, targets = many
    asked = (targets != IGNORE_INDEX)[:, 1 : ROW - 3]
    for gap in (1, 2, 7):
        left, right = asked[:, :-gap].ravel(), asked[:, gap:].ravel()
        assert likely(
            np.array([[(~left & ~right).sum(), (~left & right).sum()], [(left & ~right).sum(), (left & right).sum()]])
        )
    below = asked[:-1].ravel(), asked[1:].ravel()  # the same place in the next row
    assert likely(np.histogram2d(*(side.astype(int) for side in below), bins=2)[0])
    by_place = np.stack([asked.sum(0), (~asked).sum(0)])
    assert likely(by_place)


def test_what_is_shown_depends_on_no_place_and_no_word(many):
    ids, shown, targets = many
    asked = targets != IGNORE_INDEX
    kind = np.where(shown == 4, 0, np.where(shown == ids, 1, 2))
    for column in (np.broadcast_to(np.arange(ROW), ids.shape), ids):
        groups = column[asked]
        table = np.stack([np.bincount(groups[kind[asked] == one], minlength=ROW) for one in range(3)])
        assert likely(table[:, table.sum(0) > 0])


def test_stand_ins_are_drawn_from_all_pieces_alike():
    _, shown, targets = rows(MaskingConfig(masked=0, replaced=1, kept=0))
    counts = np.bincount(shown[targets != IGNORE_INDEX], minlength=SIZE)
    assert not counts[:5].any()
    assert stats.chisquare(counts[5:]).pvalue > 1e-4


def test_whole_words_or_none():
    ids, _, targets = rows(MaskingConfig(whole_words=True), 1000)
    asked = targets != IGNORE_INDEX
    for row, chosen in zip(ids[:50], asked, strict=False):
        words = TABLE.word_ids(row)
        for word in set(words.tolist()) - {NO_WORD}:
            assert len(set(chosen[words == word].tolist())) == 1
    pieces = (ids > 4).sum()
    # Words of one and of two pieces: fewer choices, so the error of the share is larger.
    assert within(asked.sum(), pieces, 0.15, errors=4 * 1.5)
    alone = rows(MaskingConfig(), 50)[2] != IGNORE_INDEX
    assert any(
        len(set(chosen[TABLE.word_ids(row) == word].tolist())) > 1
        for row, chosen in zip(ids, alone, strict=False)
        for word in range(ROW)
    )


def test_the_words_of_a_row():
    ids = np.array([2, 6, 8, 11, 7, 3, 8, 1, 8, 3, 0])
    assert TABLE.word_ids(ids).tolist() == [-1, 1, 1, 1, 2, -1, 4, 5, 5, -1, -1]


def test_the_same_numbers_the_same_mask_and_another_epoch_another():
    one, again, other = (rows(MaskingConfig(), 20, epoch)[1:] for epoch in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one[1], other[1])
    assert len({tuple(row) for row in (one[1] == IGNORE_INDEX).tolist()}) == 20


def test_a_mask_is_pinned():
    """For ever: a run goes on from its place, also with a newer numpy."""
    row = np.r_[2, np.arange(10, 30), 3]
    found = mask_row(row, TABLE.word_ids(row), MaskingConfig(), TABLE, (1, 2, 3))
    assert {place: int(found.ids[place]) for place in np.flatnonzero(found.targets != IGNORE_INDEX)} == {
        1: 4,
        2: 4,
        8: 4,
    }


@given(
    ids=st.lists(st.integers(0, SIZE - 1), max_size=12).map(np.array),
    seed=st.integers(0, 1000),
    whole=st.booleans(),
    share=st.sampled_from([1e-9, 0.15, 1.0]),
)
@settings(max_examples=200, deadline=None)
def test_symbols_stay_and_something_is_asked_of_every_row_with_words(ids, seed, whole, share):
    ids = ids.astype(np.int64)
    words = TABLE.word_ids(ids)
    found = mask_row(ids, words, MaskingConfig(whole_words=whole, share=share), TABLE, (seed,))
    free = words != NO_WORD
    asked = found.targets != IGNORE_INDEX
    assert not asked[~free].any()
    assert np.array_equal(found.ids[~asked], ids[~asked])
    assert asked.any() == free.any()
    assert not np.isin(found.ids[asked & (found.ids != ids)], [0, 1, 2, 3]).any()
    if share == 1:
        assert np.array_equal(asked, free)
    if share == 1e-9 and free.any():
        assert len(set(words[asked].tolist())) == 1


def test_shares_that_do_not_add_up():
    with pytest.raises(ConfigError, match=r"masked 0.5 \+ replaced 0.1 \+ kept 0.1 is 0.7, wanted 1"):
        MaskingConfig(masked=0.5)
    with pytest.raises(ConfigError, match=r"share: got '0', wanted greater than 0"):
        override(MaskingConfig(), ["share=0"])
    assert override(MaskingConfig(), ["masked=1", "kept=0", "replaced=0"]).masked == 1
