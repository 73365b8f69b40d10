"""Batches of masked text: what a row holds, an order that can be resumed, little padding, fixed held-out masks."""

import json
from dataclasses import replace
from itertools import islice, takewhile

import numpy as np
import pytest
import torch

from regard.data.batches import DataPosition
from regard.data.masking import MaskingConfig, MaskingVocab
from regard.data.sentences import SentenceCorpus
from regard.data.stores.documents import TokenizedDocuments
from regard.data.text_corpus import TextDataConfig
from regard.errors import ConfigError, DataError
from regard.tasks.masked_lm import dataset as masked_text
from regard.tasks.masked_lm.dataset import MaskedBatch, MaskedText, tokenized
from regard.tokenizers.wordpiece import WordPieceTokenizer

BEGINNING = DataPosition(0, 0)
SIZE = 1000
TABLE = MaskingVocab(pad_id=0, unk_id=1, bos_id=2, eos_id=3, mask_id=4, is_continuation=np.arange(SIZE) % 5 == 4)


def documents(count: int, seed: int = 0, most: int = 30) -> TokenizedDocuments:
    """Sentences of random pieces."""
    chance = np.random.default_rng(seed)
    return TokenizedDocuments.of(
        [
            [chance.integers(5, SIZE, chance.integers(1, 15)).tolist() for _ in range(chance.integers(1, most))]
            for _ in range(count)
        ]
    )


def text(**settings) -> MaskedText:
    given = {"training": documents(60), "validation": documents(9, 1), "context": 48, "table": TABLE}
    return MaskedText(**{**given, "masking": MaskingConfig(), **settings})


def take(count: int, data: MaskedText, *, max_tokens=480, seed=1, start=BEGINNING) -> list:
    return list(islice(data.training_batches(max_tokens=max_tokens, seed=seed, start=start), count))


def same(one: MaskedBatch, other: MaskedBatch) -> bool:
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def unmasked(batch: MaskedBatch) -> torch.Tensor:
    ids = batch.ids.clone()
    ids.view(-1)[batch.positions] = batch.targets
    return ids


def test_a_row_is_two_segments_between_their_symbols():
    data = text()
    whole = data.training.ids.tolist()
    for _, batch in take(20, data):
        assert batch.ids.dtype == batch.segment_ids.dtype == batch.targets.dtype == batch.next.dtype == torch.int64
        assert batch.tokens == len(batch.positions) == len(batch.targets) > 0
        for row, segment_ids in zip(unmasked(batch).tolist(), batch.segment_ids.tolist(), strict=True):
            length = len(row) - row.count(0)
            assert row[0] == 2
            assert row[length:] == [0] * (len(row) - length) == segment_ids[length:]
            middle = row.index(3)
            assert segment_ids[: middle + 1] == [0] * (middle + 1)
            assert segment_ids[middle + 1 : length] == [1] * (length - middle - 1)
            assert row.index(3, middle + 1) == length - 1
            assert middle - 1 > 0
            assert middle + 1 < length - 1
    assert any(whole[start : start + middle - 1] == row[1:middle] for start in range(len(whole)))


def test_zero_says_that_the_second_segment_follows():
    """As Hugging Face numbers it: 0 is next, 1 is not."""
    data = text(training=TokenizedDocuments.of([[[5 + d] * 4] * 9 for d in range(200)]))
    seen = set()
    for _, batch in take(20, data):
        rows = unmasked(batch)
        first = rows[:, 1]
        lengths = (rows != 0).sum(1)
        second = rows[torch.arange(len(rows)), lengths - 2]
        assert torch.equal((first != second).long(), batch.next)
        seen |= set(batch.next.tolist())
    assert seen == {0, 1}


def test_rows_of_one_segment():
    data = text(next_sentence=False)
    plan = take(200, data)
    epoch = [batch for position, batch in plan if position.epoch == 0]
    assert len(epoch) < 200
    pieces = 0
    for batch in epoch:
        assert batch.next is None
        assert not batch.segment_ids.any()
        assert ((unmasked(batch) == 3).sum(1) == 1).all()
        pieces += int((batch.ids != 0).sum()) - 2 * len(batch.ids)
    assert pieces == len(data.training.ids), "every piece once an epoch"


@pytest.mark.parametrize("next_sentence", [True, False])
@pytest.mark.parametrize("max_tokens", [480, 5000])
def test_little_padding_and_no_batch_over_the_budget(next_sentence, max_tokens):
    data = text(training=documents(300), next_sentence=next_sentence)
    stream = data.training_batches(max_tokens=max_tokens, seed=1, start=BEGINNING)
    batches = [batch for _, batch in takewhile(lambda found: found[0].epoch == 0, stream)]
    positions = sum(batch.ids.numel() for batch in batches)
    padding = sum(int((batch.ids == 0).sum()) for batch in batches)
    assert max_tokens - 48 < max(batch.ids.numel() for batch in batches) <= max_tokens, "full, but for less than a row"
    assert padding / positions < 0.1
    assert positions / len(batches) > 0.7 * max_tokens


@pytest.mark.parametrize("next_sentence", [True, False])
def test_a_run_goes_on_where_it_stopped(next_sentence, monkeypatch):
    monkeypatch.setattr(masked_text, "parts", lambda found: [range(20), range(20, len(found))])
    data = text(next_sentence=next_sentence, training=documents(40))
    whole = take(60, data)
    assert whole[-1][0].epoch > 2, "over several rounds"
    for place in range(0, 60, 7):
        rest = take(5, data, start=whole[place][0])
        for (position, one), (wanted, other) in zip(rest, whole[place + 1 :], strict=False):
            assert position == wanted
            assert same(one, other)


def test_another_epoch_has_other_rows_and_masks_and_another_seed_too():
    data = text(training=documents(4))
    first = [batch for position, batch in take(60, data, max_tokens=10**6) if position.epoch < 3]
    assert len(first) == 3
    assert not same(first[0], first[1])
    assert not same(first[0], take(1, data, max_tokens=10**6, seed=2)[0][1])


def test_all_parts_have_their_turn(monkeypatch):
    training = TokenizedDocuments.of([[[5 + d] * 4] * 9 for d in range(9)])
    monkeypatch.setattr(masked_text, "parts", lambda found: [range(s, s + 3) for s in (0, 3, 6)][: len(found) // 3])
    data = text(training=training, validation=training)
    seen = [set(unmasked(batch)[:, 1].tolist()) for _, batch in take(9, data, max_tokens=10**6)]
    for start in (0, 3, 6):
        assert sorted(map(sorted, seen[start : start + 3])) == [[5, 6, 7], [8, 9, 10], [11, 12, 13]]


def test_what_is_kept_out_is_always_asked_alike():
    data = text()
    batches = list(data.validation_batches(max_tokens=480))
    for one, other in zip(batches, data.validation_batches(max_tokens=480), strict=True):
        assert same(one, other)

    def questions(found):
        return sorted(
            (tuple(row[row != 0].tolist()), tuple(where.tolist()))
            for batch in found
            for row, where in zip(batch.ids, batch.segment_ids, strict=True)
            for where in [where[row != 0]]
        )

    assert questions(batches) == questions(data.validation_batches(max_tokens=200)), "whatever the batches"
    first = questions(data.validation_batches(max_tokens=480, most=5))
    assert len(first) == 5
    assert set(first) <= set(questions(batches))
    assert list(data.validation_batches(max_tokens=480, most=0)) == []


def test_an_evaluation_looks_at_no_more_than_it_is_told():
    data = text(validation_tokens=200)
    rows = sum((batch.ids != 0).sum() for batch in data.validation_batches(max_tokens=10**6))
    assert 200 <= rows < 200 + 48
    assert len(text(validation_tokens=10**9).validation_rows) == len(text().validation_rows)


def test_documents_that_no_pairs_can_be_made_of():
    one = documents(1)
    with pytest.raises(
        DataError, match=r"to train on is one document.*blank lines between documents.*next_sentence=fal"
    ):
        text(training=one)
    with pytest.raises(DataError, match=r"held out is one document.*data\.validation"):
        text(validation=one)
    assert text(training=one, validation=one, next_sentence=False)
    single = TokenizedDocuments.of([[[5, 6]], [[7]], [[8]]])
    with pytest.raises(DataError, match=r"no document .* has two sentences.*task\.next_sentence=false"):
        text(training=single)
    with pytest.raises(DataError, match="is empty"):
        text(training=TokenizedDocuments.of([]), next_sentence=False)
    with pytest.raises(ConfigError, match="a context of 7; wanted at least 8"):
        text(context=7)


def test_a_batch_moves_with_all_its_tensors():
    (_, batch), *_ = take(1, text())
    moved = batch.to("meta")
    assert {value.device.type for value in vars(moved).values() if isinstance(value, torch.Tensor)} == {"meta"}
    assert moved.tokens == batch.tokens
    assert replace(batch, next=None).to("meta").next is None


STORY = [f"The old captain {deed} {when}.\nNobody {deed}.\nThen he slept {when}." for deed in ("sang", "walked", "read")
         for when in ("before dawn", "at noon", "in winter", "twice")]  # fmt: skip


def test_from_files_to_batches_through_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "story.txt"
    path.write_text("\n\n".join(STORY * 20), encoding="utf-8")
    corpus = SentenceCorpus([path], TextDataConfig())
    tokenizer = WordPieceTokenizer.train(corpus.sample(), 120)
    training, validation = (tokenized(corpus, part, tokenizer) for part in ("training", "validation"))
    assert len(training) + len(validation) == corpus.documents == 240
    folders = set((tmp_path / "cache").iterdir())
    assert len(folders) == 2
    again = tokenized(corpus, "training", tokenizer)
    assert set((tmp_path / "cache").iterdir()) == folders
    assert np.array_equal(again.ids, training.ids)
    assert json.loads((next(iter(folders)) / "index.json").read_text())["what"] == "tokenized documents"
    data = MaskedText(training, validation, 32, MaskingVocab.from_tokenizer(tokenizer), MaskingConfig())
    _, batch = take(1, data)[0]
    assert not (unmasked(batch) == tokenizer.unk_id).any()
    lines = "".join(piece.text + "\n" for piece in corpus.training()).lower().splitlines()
    borders = training.sentences[:40].tolist()
    for line, start, stop in zip(lines, borders, borders[1:], strict=False):
        assert tokenizer.decode(training.ids[start:stop].tolist()) == line
    tokenizer.mask_id = None
    with pytest.raises(ConfigError, match="no mask token"):
        MaskingVocab.from_tokenizer(tokenizer)


def test_the_same_row_is_masked_otherwise_in_another_epoch():
    pairs = TokenizedDocuments.of([[[5 + 2 * d, 6 + 2 * d]] for d in range(40)])  # too short to be cut in two ways
    data = text(training=pairs, next_sentence=False)
    first, second = (batch for _, batch in take(2, data, max_tokens=10**6))
    hidden = [
        {tuple(row): tuple(shown) for row, shown in zip(unmasked(batch).tolist(), batch.ids.tolist(), strict=True)}
        for batch in (first, second)
    ]
    assert hidden[0].keys() == hidden[1].keys()
    assert len(hidden[0]) == 40
    assert hidden[0] != hidden[1]
