"""Windows of text: an order that can be resumed, every token a target once, documents kept apart."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batches import DataPosition
from regard.data.stores.token_stream import TokenStream
from regard.errors import DataError
from regard.tasks.language_modeling.dataset import LanguageText, TextBatch

BEGINNING = DataPosition(0, 0)


def stream(tokens: int, begins: tuple[int, ...] = (0,), shard: int = 7) -> TokenStream:
    """1, 2, 3 and so on, the documents beginning at these places."""
    row = np.arange(1, tokens + 1, dtype=np.uint16)
    shards = [row[start : start + shard] for start in range(0, tokens, shard)]
    return TokenStream(shards, shard, np.array([*begins, tokens]), tokens)


def text(training=50, validation=23, context=4, **settings) -> LanguageText:
    return LanguageText(stream(training), stream(validation), context, **settings)


def take(count: int, data: LanguageText, *, max_tokens=12, seed=1, start=BEGINNING) -> list:
    return list(islice(data.training_batches(max_tokens=max_tokens, seed=seed, start=start), count))


def test_a_window_and_the_tokens_behind_it():
    (position, batch), *_ = take(1, text())
    assert position == DataPosition(0, 1)
    assert batch.ids.shape == batch.targets.shape == (3, 4)
    assert batch.ids.dtype == batch.targets.dtype == torch.int64
    assert torch.equal(batch.targets, batch.ids + 1)
    assert torch.equal(batch.ids, batch.ids[:, :1] + torch.arange(4))
    assert batch.document_ids is None
    assert batch.tokens == 12


def test_the_order_is_pinned():
    """For ever: a run goes on from its place, also with a newer numpy."""
    starts = [batch.ids[:, 0].tolist() for _, batch in take(3, text())]
    assert starts == [[5, 11, 34], [26, 1, 21], [14, 39, 12]]


def test_a_run_goes_on_where_it_stopped():
    whole = take(6, text())
    position = whole[2][0]
    rest = take(3, text(), start=position)
    assert [place for place, _ in rest] == [place for place, _ in whole[3:]]
    for (_, one), (_, other) in zip(whole[3:], rest, strict=True):
        assert torch.equal(one.ids, other.ids)
    assert not torch.equal(whole[0][1].ids, whole[1][1].ids)
    assert not torch.equal(take(1, text(), seed=2)[0][1].ids, whole[0][1].ids)


def test_every_place_is_drawn_equally_often():
    starts = torch.cat([batch.ids[:, 0] for _, batch in take(50, text(training=14), max_tokens=4000)])
    counts = torch.bincount(starts)
    assert counts[0] == 0
    assert len(counts) == 11  # 1 to 10: the last window ends with the text
    assert counts[1:].min() > 0.9 * counts[1:].max()


def test_the_smallest_batch_is_one_window():
    assert take(1, text(), max_tokens=1)[0][1].ids.shape == (1, 4)


@given(tokens=st.integers(2, 60), context=st.integers(1, 12), max_tokens=st.integers(1, 50), apart=st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_token_but_the_first_is_a_target_once(tokens, context, max_tokens, apart):
    data = LanguageText(stream(100), stream(tokens), context, apart)
    batches = list(data.validation_batches(max_tokens=max_tokens))
    targets = torch.cat([batch.targets.flatten() for batch in batches])
    assert targets[targets != -100].tolist() == list(range(2, tokens + 1))
    assert sum(batch.tokens for batch in batches) == tokens - 1
    for batch in batches:
        assert batch.ids.shape[1] == context
        assert len(batch.ids) <= max(1, max_tokens // context)
        real = batch.targets != -100
        assert real[:, 0].all(), "no window without a target"
        assert torch.equal(batch.ids[real] + 1, batch.targets[real])
        assert (batch.ids[~real] == 0).all()
        if apart:
            assert torch.equal(batch.document_ids, real.long())


def test_only_the_first_windows():
    batches = list(text().validation_batches(max_tokens=8, most=3))
    assert [len(batch.ids) for batch in batches] == [2, 1]
    assert batches[-1].targets.tolist() == [[10, 11, 12, 13]]
    assert list(text().validation_batches(max_tokens=8, most=0)) == []


@given(tokens=st.integers(2, 60), evaluated=st.integers(2, 60), apart=st.booleans())
@settings(max_examples=60, deadline=None)
def test_an_evaluation_looks_at_no_more_than_it_is_told(tokens, evaluated, apart):
    data = LanguageText(stream(100), stream(tokens), 7, apart, validation_tokens=evaluated)
    targets = torch.cat([batch.targets.flatten() for batch in data.validation_batches(max_tokens=20)])
    assert targets[targets != -100].tolist() == list(range(2, min(tokens, evaluated) + 1))


def test_documents_kept_apart():
    data = LanguageText(stream(50), stream(10, begins=(0, 3, 4, 9)), 5, separate_documents=True)
    (batch,) = data.validation_batches(max_tokens=100)
    assert batch.ids.tolist() == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]]
    assert batch.document_ids.tolist() == [[1, 1, 1, 2, 3], [1, 1, 1, 1, 0]]
    assert batch.targets.tolist() == [[2, 3, -100, -100, 6], [7, 8, 9, -100, -100]]
    assert batch.tokens == 6
    together = LanguageText(data.training, data.validation, 5)
    (batch,) = together.validation_batches(max_tokens=100)
    assert batch.document_ids is None
    assert batch.targets.tolist() == [[2, 3, 4, 5, 6], [7, 8, 9, 10, -100]]


def test_documents_kept_apart_in_training():
    data = LanguageText(stream(50, begins=(0, 10, 20, 30, 40)), stream(9), 8, separate_documents=True)
    for _, batch in take(20, data):
        same = (batch.ids - 1) // 10 == (batch.ids[:, :1] - 1) // 10
        assert torch.equal(batch.document_ids == 1, same)
        assert torch.equal(batch.targets == -100, batch.ids % 10 == 0)


def test_too_little_text_says_what_to_give():
    assert take(1, text(training=5))[0][1].ids.tolist() == [[1, 2, 3, 4]] * 3
    with pytest.raises(DataError, match=r"has 4 tokens, wanted more than the 4 of a window; .* model\.context=1"):
        text(training=4)
    with pytest.raises(DataError, match=r"the held-out text has 1 tokens"):
        text(validation=1)
    assert len(list(text(validation=3).validation_batches(max_tokens=100))) == 1  # shorter than a window: padded


def test_a_batch_moves_with_all_its_tensors():
    (_, batch), *_ = take(1, text(separate_documents=True))
    moved = batch.to("meta")
    assert isinstance(moved, TextBatch)
    assert {value.device.type for value in (moved.ids, moved.targets, moved.document_ids)} == {"meta"}
    assert moved.tokens == batch.tokens
