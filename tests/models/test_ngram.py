"""The n-gram model: Kneser-Ney by hand, and the laws of language models."""

from collections import Counter

import pytest
import torch
from torch.testing import assert_close

from regard.checkpoint import assign_weights, encode_tensors, read_tensors
from regard.errors import ConfigError
from regard.generation import Beam, Greedy, generate
from regard.generation.decode import Limits
from regard.models import build
from regard.models.ngram import NGram, NGramConfig, count_ngrams

TEXT = torch.randint(3, 12, (400,), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model():
    return NGram.fit(NGramConfig(vocab_size=12, order=3, context=32), TEXT)


@pytest.fixture
def ids():
    return torch.randint(3, 12, (4, 9), generator=torch.Generator().manual_seed(1))


def by_hand(text: list[int], history: tuple[int, ...], word: int, order: int, vocab_size: int) -> float:
    """Interpolated Kneser-Ney from dictionaries, straight from the definition."""

    def counts(n: int) -> Counter:
        if n == order:
            return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
        longer = {tuple(text[i : i + n + 1]) for i in range(len(text) - n)}
        return Counter([gram[1:] for gram in longer] + [tuple(text[:n])])

    if not 0 < len(history) + 1 <= order:
        return 1 / vocab_size
    table = counts(len(history) + 1)
    n1, n2 = (sum(count == k for count in table.values()) for k in (1, 2))
    discount = n1 / (n1 + 2 * n2) if n1 and n2 else 0.5
    after = {gram[-1]: count for gram, count in table.items() if gram[:-1] == history}
    lower = by_hand(text, history[1:], word, order, vocab_size) if history else 1 / vocab_size
    if not after:
        return lower
    total = sum(after.values())
    return max(after.get(word, 0) - discount, 0) / total + discount * len(after) / total * lower


def test_the_probabilities_are_those_of_the_definition(model):
    text = TEXT.tolist()
    found = model(torch.tensor([[5, 7, 4, 11]])).exp()[0]
    for position, history in enumerate([(5,), (5, 7), (7, 4), (4, 11)]):
        wanted = [by_hand(text, history, word, 3, 12) for word in range(12)]
        assert_close(found[position], torch.tensor(wanted), rtol=1e-5, atol=1e-7)


def test_a_lower_order_asks_in_how_many_places_not_how_often():
    """'San Francisco' four times: after a word never seen before, Francisco is no more likely than one seen once."""
    san, francisco, a, b, c = 0, 1, 2, 3, 4
    text = torch.tensor([a, san, francisco, b, san, francisco, a, san, francisco, c, san, francisco, a, b, c])
    model = NGram.fit(NGramConfig(vocab_size=6, order=2), text)
    unigram = model._interpolated(1, torch.tensor([[5]]), torch.full((1, 6), 1 / 6, dtype=torch.float64))[0]
    assert (text == francisco).sum() == 4
    assert unigram[francisco] < unigram[san]  # one place against three
    assert unigram[francisco] < unigram[a]


def test_the_counts_are_those_of_the_text():
    (ones, places), (twos, counts) = count_ngrams(torch.tensor([1, 2, 1, 2, 3]), 2, 10)
    assert dict(zip(twos.tolist(), counts.tolist(), strict=True)) == {12: 2, 21: 1, 23: 1}
    assert dict(zip(ones.tolist(), places.tolist(), strict=True)) == {1: 2, 2: 1, 3: 1}  # 1: after 2, and at the start


@pytest.mark.parametrize("order", [1, 2, 5])
def test_every_distribution_sums_to_one(order, ids):
    model = NGram.fit(NGramConfig(vocab_size=12, order=order), TEXT)
    assert_close(model(ids).exp().sum(-1), torch.ones(ids.shape))
    unseen = torch.tensor([[0, 1, 2, 0, 1]])
    assert_close(model(unseen).exp().sum(-1), torch.ones(unseen.shape))


def test_a_longer_history_predicts_better_and_smoothing_beats_counting():
    """A text whose next token depends on the last two: order 3 must see it, order 2 cannot."""
    text = [3, 4]
    for draw in torch.rand(3000, generator=torch.Generator().manual_seed(2)).tolist():
        text.append(3 + (text[-1] + 2 * text[-2]) % 7 if draw < 0.8 else 3 + int(draw * 1e4) % 7)
    train, test = torch.tensor(text[:2500]), torch.tensor([text[2500:]])

    def loss(order: int) -> float:
        model = NGram.fit(NGramConfig(vocab_size=10, order=order), train)
        return -model(test)[0, :-1].gather(1, test[0, 1:, None]).mean().item()

    assert loss(3) < loss(2) - 0.5
    assert loss(5) < loss(3) + 0.2  # more order than the text has costs little: the discount goes to what is known


def test_the_future_changes_nothing_and_only_the_window_of_the_past_matters(model, ids):
    found = model(ids)
    changed = ids.clone()
    changed[:, 4:] = (changed[:, 4:] - 3 + 4) % 9 + 3
    assert_close(model(changed)[:, :4], found[:, :4])
    changed = ids.clone()
    changed[:, 0] = (changed[:, 0] - 3 + 4) % 9 + 3
    assert torch.equal(model(changed)[:, 2:], found[:, 2:])  # order 3: two tokens of history
    assert not torch.equal(model(changed)[:, 1], found[:, 1])


def test_texts_packed_in_a_row_do_not_see_each_other(model, ids):
    document_ids = torch.tensor([[1] * 4 + [2] * 5]).expand(4, -1)
    found = model(ids, document_ids)
    assert_close(found[:, :4], model(ids[:, :4]))
    assert_close(found[:, 4:], model(ids[:, 4:]))


@torch.no_grad()
def test_cached_steps_from_ragged_prompts_equal_the_full_pass(model, ids):
    prompts = [ids[0, :5].tolist(), ids[1, :1].tolist(), ids[2, :3].tolist(), ids[3, :2].tolist()]
    state, steps = model.start(prompts), []
    for tokens in (state.first, *ids[:, 5:].T):
        logits, state = model.step(tokens, state)
        steps.append(logits)
    for row, prompt in enumerate(prompts):
        whole = model(torch.tensor([[*prompt, *ids[row, 5:].tolist()]]))[0, len(prompt) - 1 :]
        assert_close(torch.stack(steps, 1)[row], whole)
    rows = torch.tensor([2, 0, 0])
    state.reorder(rows)
    assert torch.equal(model.step(ids[rows, 0], state)[0].exp().sum(-1).round(decimals=4), torch.ones(3))


def test_it_generates_with_every_strategy(model):
    for strategy in (Greedy(), Beam(3)):
        ((best, *_),) = generate(model, [[5, 7]], strategy, Limits([6]))
        assert len(best.tokens) == 6


def test_save_and_load_are_bit_equal(model, ids, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(encode_tensors(model.state_dict()))
    with torch.device("meta"):
        loaded = build(model.config)
    assign_weights(loaded, read_tensors(tmp_path / "model.safetensors"), "model.safetensors")
    assert torch.equal(loaded(ids), model(ids))
    assert NGramConfig.model_validate_json(model.config.model_dump_json()) == model.config


def test_the_hidden_states_times_the_table_are_the_log_probabilities(model, ids):
    assert_close(model.hidden_states(ids) @ model.output_embeddings.T, model(ids))
    assert_close(model(ids).log_softmax(-1), model(ids))


def test_an_order_that_does_not_fit_says_which_would():
    with pytest.raises(ConfigError, match=r"try model\.order=5, or data\.tokenizer=characters"):
        NGramConfig(vocab_size=4096, order=6)
