"""Search over models whose every probability is known."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ConfigError
from regard.generation import Beam, Greedy, Sample, generate
from regard.generation.decode import Limits

PADDING, END = 0, 2


class Chain:
    """A Markov chain: the next token depends on the last alone. Inputs are first tokens (B,)."""

    def __init__(self, logits):
        self.logits = logits
        self.config = SimpleNamespace(special_ids=SimpleNamespace(pad_id=PADDING, eos_id=END))

    def start(self, inputs):
        return State(inputs)

    def step(self, tokens, state):
        state.seen.append(tokens)
        return self.logits[tokens].clone(), state


class State:
    def __init__(self, first):
        self.first = first
        self.seen = []

    def reorder(self, rows):
        self.first = self.first[rows.flatten()]


def chain(seed, size=5, sharpness=1.0):
    return Chain(torch.randn(size, size, generator=torch.Generator().manual_seed(seed)) * sharpness)


def all_texts(model, first, longest):
    """Every text with its log probability: those that end, and those cut off at the limit."""
    log = model.logits.log_softmax(-1)
    for length in range(longest + 1):
        for tokens in itertools.product([t for t in range(len(log)) if t not in (PADDING, END)], repeat=length):
            total = sum(log[a, b].item() for a, b in itertools.pairwise([first, *tokens]))
            if length < longest:
                yield list(tokens), total + log[([first, *tokens])[-1], END].item(), length + 1
            else:
                yield list(tokens), total, length


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), penalty=st.sampled_from([0.0, 0.6, 1.0]))
def test_a_beam_as_wide_as_everything_finds_the_best_text(seed, penalty):
    model = chain(seed)
    (found,) = generate(model, torch.tensor([1]), Beam(200, penalty), Limits([3]))
    best = max(all_texts(model, 1, 3), key=lambda text: text[1] / text[2] ** penalty)
    assert found[0].score == pytest.approx(best[1] / best[2] ** penalty, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_returned_texts_are_ranked_distinct_and_scored_as_the_model_says(seed):
    model = chain(seed)
    log = model.logits.log_softmax(-1)
    for first, found in zip(
        [1, 3], generate(model, torch.tensor([1, 3]), Beam(4, 0.6, num_return=4), Limits([6, 4])), strict=True
    ):
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert len({(tuple(one.tokens), one.ended) for one in found}) == len(found)
        for one in found:
            path = [first, *one.tokens, *([END] if one.ended else [])]
            assert one.log_probability == pytest.approx(
                sum(log[a, b].item() for a, b in itertools.pairwise(path)), abs=1e-4
            )
            assert one.score == pytest.approx(one.log_probability / (len(path) - 1) ** 0.6, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_greedy_takes_the_likeliest_and_stops_at_end_or_limit(seed):
    model = chain(seed)
    ((found,),) = generate(model, torch.tensor([1]), Greedy(), Limits([7]))
    token, wanted = 1, []
    hidden = model.logits.index_fill(1, torch.tensor([PADDING]), -torch.inf)  # padding is never written
    while len(wanted) < 7 and (token := int(hidden[token].argmax())) != END:
        wanted.append(token)
    assert found.tokens == wanted
    assert found.ended == (len(wanted) < 7)


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)])
def test_a_closed_text_is_ranked_as_if_it_had_ended(strategy):
    model = chain(0)
    model.logits[:, END] = -50.0
    ((cut, *_),) = generate(model, torch.tensor([1]), strategy, Limits([5]))
    ((closed, *_),) = generate(model, torch.tensor([1]), strategy, Limits([5], force_eos=True))
    assert (cut.tokens, cut.ended) == (closed.tokens, closed.ended)
    assert not cut.ended
    assert closed.log_probability == pytest.approx(cut.log_probability)
    if isinstance(strategy, Beam):  # one more token to share the same log probability
        assert closed.score == pytest.approx(cut.score * 5 / 6)


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)])
def test_probabilities_with_and_without_the_share_of_padding(strategy):
    model = chain(3)
    model.logits[:, PADDING] = 5.0
    hidden = model.logits.index_fill(1, torch.tensor([PADDING]), -torch.inf)
    for renormalized, log in ((False, model.logits.log_softmax(-1)), (True, hidden.log_softmax(-1))):
        ((found, *_),) = generate(model, torch.tensor([1]), strategy, Limits([5], renormalize=renormalized))
        path = [1, *found.tokens, *([END] if found.ended else [])]
        total = sum(log[one, other].item() for one, other in itertools.pairwise(path))
        assert found.log_probability == pytest.approx(total, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 4))
def test_no_text_runs_on_past_any_of_several_ends(seed, width):
    model, ends = chain(seed, size=9), {END, 3, 4}
    limits = Limits([6, 6], stop_ids=ends - {END})
    for found in generate(model, torch.tensor([1, 7]), Beam(width, num_return=width), limits):
        assert found
        for one in found:
            assert not ends & set(one.tokens)


def test_the_end_waits_for_the_shortest_length():
    model = chain(0)
    model.logits[:, END] = 50.0
    for strategy in (Greedy(), Beam(3), Sample()):
        ((found, *_),) = generate(model, torch.tensor([1]), strategy, Limits([9], min_new_tokens=4))
        assert len(found.tokens) == 4
        assert found.ended


def frequencies(strategy, logits, num_samples=20_000):
    chances = (torch.arange(num_samples) + 0.5) / num_samples  # every chance once: frequencies are exact up to 1/draws
    picked = strategy.pick(logits.expand(num_samples, -1), chances)
    return torch.bincount(picked, minlength=logits.shape[-1]) / num_samples


def test_sampling_follows_the_probabilities_and_the_temperature():
    logits = torch.tensor([[0.0, 1.0, 2.0, -1.0]])
    for temperature in (0.5, 1.0, 2.0):
        wanted = (logits[0] / temperature).softmax(-1)
        assert frequencies(Sample(temperature), logits).tolist() == pytest.approx(wanted.tolist(), abs=2e-4)


def test_top_k_and_top_p_leave_the_tail_out_and_share_the_rest():
    share = torch.tensor([0.5, 0.3, 0.15, 0.05])
    logits = share.log()[None]
    assert frequencies(Sample(top_k=2), logits).tolist() == pytest.approx([0.625, 0.375, 0, 0], abs=2e-4)
    # 0.5 + 0.3 reaches 0.8: the third is out; with 0.81 it is in.
    assert frequencies(Sample(top_p=0.79), logits).tolist() == pytest.approx([0.625, 0.375, 0, 0], abs=2e-4)
    assert frequencies(Sample(top_p=0.81), logits).tolist() == pytest.approx(
        [*(share[:3] / 0.95).tolist(), 0], abs=2e-4
    )
    assert frequencies(Sample(top_p=0.01), logits).tolist() == [1, 0, 0, 0]


def test_a_seed_makes_a_sample_repeatable():
    model = chain(0)
    texts = [
        [one.tokens for (one,) in generate(model, torch.tensor([1, 3, 4]), Sample(seed=seed), Limits([20] * 3))]
        for seed in (7, 7, 8)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sample(temperature=0), "temperature is 0, wanted more than 0"),
        (lambda: Sample(temperature=math.nan), "temperature is nan"),
        (lambda: Sample(top_k=0), "top_k is 0, wanted 1 or more"),
        (lambda: Sample(top_p=1.5), "top_p is 1.5"),
        (lambda: Beam(0), "num_beams is 0, wanted 1 to 100,000"),
        (lambda: Beam(2, num_return=3), "num_return is 3, wanted 1 to num_beams, which is 2"),
    ],
)
def test_impossible_strategies_are_refused_when_they_are_made(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
