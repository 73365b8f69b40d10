"""Drawing by chance: what may be drawn is what transformers leaves in, and each text has its own chance."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from regard.errors import ConfigError, InputError
from regard.generation import Beam, Greedy, Sample, generate
from regard.generation.decode import Limits
from regard.generation.strategies import penalize_repetition
from regard.layers import sampling as module
from tests.contracts.examples import CAUSAL_LM, example_of

END = 2


def theirs(strategy: Sample, logits: torch.Tensor) -> torch.Tensor:
    """The probabilities transformers would draw from, its warpers in its own order."""
    ids = torch.zeros(len(logits), 1, dtype=torch.long)
    logits = TemperatureLogitsWarper(strategy.temperature)(ids, logits)
    if strategy.top_k is not None:
        logits = TopKLogitsWarper(strategy.top_k)(ids, logits)
    if strategy.top_p < 1:
        logits = TopPLogitsWarper(strategy.top_p)(ids, logits)
    if strategy.min_p > 0:
        logits = MinPLogitsWarper(strategy.min_p)(ids, logits)
    return logits.softmax(-1)


def ours(strategy: Sample, logits: torch.Tensor, chances: int = 40_000) -> torch.Tensor:
    """How often each token comes when every chance comes once."""
    even = (torch.arange(chances, dtype=torch.float64) + 0.5) / chances
    found = [
        torch.bincount(strategy.pick(row.expand(chances, -1), even), minlength=logits.shape[-1]) / chances
        for row in logits
    ]
    return torch.stack(found)


WAYS = [
    Sample(),
    Sample(temperature=0.5),
    Sample(temperature=1.7),
    Sample(top_k=1),
    Sample(top_k=7),
    Sample(top_k=7000),  # more than there are
    Sample(top_p=0.3),
    Sample(top_p=0.9),
    Sample(top_p=0.999),
    Sample(min_p=0.1),
    Sample(temperature=0.7, top_k=20, top_p=0.8),
    Sample(temperature=1.3, top_k=12, min_p=0.2),
    Sample(temperature=0.8, top_p=0.95, min_p=0.05),
    Sample(temperature=0.9, top_k=30, top_p=0.9, min_p=0.02),
]


@pytest.mark.parametrize("strategy", WAYS, ids=str)
def test_of_fifty_words_each_is_drawn_as_often_as_transformers_would(strategy):
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(1)) * 3
    assert_close(ours(strategy, logits), theirs(strategy, logits), atol=6e-5, rtol=0)


@pytest.mark.parametrize("sharpness", [0.3, 3.0])  # flat: more than FIRST are left in; sharp: FIRST suffice
@pytest.mark.parametrize("strategy", WAYS, ids=str)
def test_of_six_thousand_words_the_same_and_the_short_way_is_the_whole_one(strategy, sharpness, monkeypatch):
    assert 4 * module.NUCLEUS_TOPK < 6000
    logits = torch.randn(2, 6000, generator=torch.Generator().manual_seed(2)) * sharpness
    wanted = theirs(strategy, logits).double()
    chances = (torch.arange(500, dtype=torch.float64) + 0.5) / 500
    for row, share in zip(logits, wanted, strict=True):
        short = strategy.pick(row.expand(500, -1), chances)
        monkeypatch.setattr(module, "NUCLEUS_TOPK", 10**6)
        whole = strategy.pick(row.expand(500, -1), chances)
        monkeypatch.undo()
        assert torch.equal(short, whole)
        assert (share[short] > 0).all()
        # Each is drawn where its own chance lies: the k-th of n draws stands at (k + 1/2) / n of the running sum.
        order = torch.arange(6000) if strategy.top_k is None and strategy.top_p == 1 else row.argsort(descending=True)
        ends = share[order].cumsum(0)
        place = torch.empty_like(order).scatter_(0, order, torch.arange(6000))[short]
        # (Words that are likely alike may stand in either order.)
        assert (chances < ends[place] + 1e-3).all()
        assert (chances > ends[place] - share[short] - 1e-3).all()


def test_the_candidates_are_the_ones_transformers_leaves_in():
    """Also the unlikeliest of them: one chance just before the end of the running sum, one at its beginning."""
    # In double precision: where a sum stands within rounding of top_p, who is right depends on the order of summing.
    logits = torch.randn(200, 50, generator=torch.Generator().manual_seed(3)).double() * 4
    for strategy in WAYS:
        left_in = theirs(strategy, logits)
        last = strategy.pick(logits, torch.full((200,), 1 - 2**-53, dtype=torch.float64))
        first = strategy.pick(logits, torch.zeros(200, dtype=torch.float64))
        assert (left_in.gather(1, last[:, None]) > 0).all()
        assert (left_in.gather(1, first[:, None]) > 0).all()
        if strategy.top_k is not None or strategy.top_p < 1:  # these are sorted: the last is the unlikeliest left in
            wanted = left_in.masked_fill(left_in == 0, 2).amin(-1)
            assert_close(left_in.gather(1, last[:, None])[:, 0], wanted)


def test_top_k_alone_leaves_in_even_what_is_hardly_likely():
    """One token has nearly all; rounding must not take the others away. (transformers leaves them in.)"""
    logits = torch.full((1, 300), -14.0)
    logits[0, :100] = torch.linspace(6, 3, 100)
    last = Sample(top_k=200).pick(logits, torch.tensor([1 - 2**-53], dtype=torch.float64))
    assert last.item() >= 100


def test_the_repetition_penalty_is_transformers():
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(4)) * 3
    said = torch.randint(50, (4, 12), generator=torch.Generator().manual_seed(5))
    for penalty in (0.8, 1.3, 5.0):
        wanted = RepetitionPenaltyLogitsProcessor(penalty)(said, logits.clone())
        assert_close(penalize_repetition(logits, said.tolist(), penalty), wanted)
    assert penalize_repetition(logits, said.tolist(), 1.0) is logits


def test_many_samples_follow_the_softmax():
    """Chi-square over 19 degrees of freedom: 43.8 is passed by one honest die in a thousand."""
    table = torch.randn(20, generator=torch.Generator().manual_seed(6))
    num_samples = 20_000
    found = generate(Urn(table), torch.zeros(1), Sample(seed=11, num_samples=num_samples), Limits([1]))[0]
    counts = torch.bincount(torch.tensor([one.tokens[0] for one in found]), minlength=20)
    wanted = num_samples * table.softmax(-1)
    assert ((counts - wanted).square() / wanted).sum() < 43.8


class Urn:
    """The same logits, always; knows no symbols."""

    def __init__(self, logits, end=None):
        self.table = logits
        self.config = SimpleNamespace(special_ids=SimpleNamespace(pad_id=None, eos_id=end))

    def start(self, inputs):
        return Rows(torch.zeros(len(inputs), dtype=torch.long))

    def step(self, tokens, state):
        return self.table.repeat(len(tokens), 1), state


class Rows:
    def __init__(self, first):
        self.first = first

    def reorder(self, rows):
        self.first = self.first[rows.flatten()]


# ------------------------------------------------ draws of ragged prompts


@pytest.fixture(params=[0, 4], ids=["gpt", "llama"])
def model(request):
    return CAUSAL_LM[request.param].loud_model()


PROMPTS = [[5, 6, 7, 8], [9], [10, 11, 12, 13, 14, 15, 16], [17, 18], [19, 20, 21]]


def drawn(model, prompts, numbers, num_samples, **settings):
    """The texts by the number of their input and of their draw."""
    limits = Limits([12] * len(prompts), row_ids=numbers, stop_ids=[3], prompts=prompts)
    strategy = Sample(**{"temperature": 1.0, "top_p": 0.95, "seed": 5, "num_samples": num_samples} | settings)
    found = generate(model, prompts, strategy, limits)
    return {
        (number, one.sample): (one.tokens, one.ended)
        for number, several in zip(numbers, found, strict=True)
        for one in several
    }


@pytest.mark.parametrize("settings", [{}, {"repetition_penalty": 1.4}, {"top_k": 10, "min_p": 0.05}], ids=str)
def test_a_sample_depends_on_nothing_beside_it(model, settings):
    many = drawn(model, PROMPTS, [0, 1, 2, 3, 4], 4, **settings)
    assert len({tuple(tokens) for tokens, _ in many.values()}) > 15
    for number, prompt in enumerate(PROMPTS):  # alone
        alone = drawn(model, [prompt], [number], 4, **settings)
        assert alone == {key: text for key, text in many.items() if key[0] == number}
    fewer = drawn(model, PROMPTS, [0, 1, 2, 3, 4], 2, **settings)  # fewer draws
    assert fewer == {key: text for key, text in many.items() if key[1] < 2}
    order = [3, 0, 4, 2, 1]  # in another order
    assert drawn(model, [PROMPTS[number] for number in order], order, 4, **settings) == many
    assert drawn(model, PROMPTS, [0, 1, 2, 3, 4], 4, **settings | {"seed": 6}) != many


def test_samples_come_likeliest_first_and_say_what_the_model_says(model):
    limits = Limits([6] * 5, prompts=PROMPTS)
    for prompt, several in zip(PROMPTS, generate(model, PROMPTS, Sample(num_samples=5), limits), strict=True):
        assert sorted(one.sample for one in several) == [0, 1, 2, 3, 4]
        assert [one.score for one in several] == sorted((one.score for one in several), reverse=True)
        for one in several:
            text = [*one.tokens, *([END] if one.ended and model.config.special_ids.eos_id == END else [])]
            with torch.no_grad():
                logits = model(torch.tensor([[*prompt, *text[:-1]]]))[0, len(prompt) - 1 :].log_softmax(-1)
            total = logits.gather(1, torch.tensor(text)[:, None]).sum().item()
            assert one.log_probability == pytest.approx(total, abs=1e-3)


def test_greedy_with_a_penalty_says_nothing_twice_and_counts_the_prompt(model):
    prompt = [5, 6, 7]
    limits = Limits([20], prompts=[prompt])
    ((found,),) = generate(model, [prompt], Greedy(repetition_penalty=1000.0), limits)
    assert len(set(found.tokens) | set(prompt)) == len(found.tokens) + len(prompt)
    ((plain,),) = generate(model, [prompt], Greedy(), limits)
    assert found.tokens != plain.tokens
    assert generate(model, [prompt], Greedy(repetition_penalty=1.0), limits)[0][0] == plain


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Beam(3)], ids=["greedy", "sample", "beam"])
def test_ids_that_are_no_words_are_not_written_but_have_their_share(strategy):
    table = torch.tensor([0.0, 0.0, 0.0, 3.0, 5.0])
    for renormalized, share in ((False, table.log_softmax(-1)[3]), (True, table[:4].log_softmax(-1)[3])):
        limits = Limits([1], vocab_size=4, renormalize=renormalized)
        ((found, *_),) = generate(Urn(table), [0], strategy, limits)
        assert found.tokens[0] < 4
        if found.tokens == [3]:
            assert found.log_probability == pytest.approx(share.item(), abs=1e-5)


@pytest.mark.parametrize("temperature", [1e-6, 1e-37, 1e-39, 1e-300])
@pytest.mark.parametrize("tail", [{}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1}], ids=str)
def test_however_cold_the_likeliest_is_drawn(temperature, tail):
    logits = torch.tensor([[3.0, 8.0, 7.9, -torch.inf], [-5.0, -8.0, -6.0, -torch.inf]])
    for chance in (0.0, 0.5, 0.999):
        found = Sample(temperature=temperature, **tail).pick(logits, torch.tensor([chance] * 2, dtype=torch.float64))
        assert found.tolist() == [1, 0]


def test_however_hot_nothing_forbidden_is_drawn():
    logits = torch.tensor([[3.0, 8.0, -torch.inf]])
    found = [Sample(temperature=1e300).pick(logits, torch.tensor([chance]).double()).item() for chance in (0.2, 0.7)]
    assert found == [0, 1]


def test_temperature_and_penalty_are_finite():
    for number in (float("inf"), float("nan")):
        with pytest.raises(ConfigError, match=f"temperature is {number}, wanted"):
            Sample(temperature=number)
        for strategy in (Greedy, Sample):
            with pytest.raises(ConfigError, match=f"repetition_penalty is {number}, wanted"):
                strategy(repetition_penalty=number)


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Beam(3)], ids=["greedy", "sample", "beam"])
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_broken_model_is_named(strategy, broken):
    table = torch.zeros(9)
    table[6] = broken
    with pytest.raises(InputError, match="^the model's logits are not finite") as caught:
        generate(Urn(table, end=3), [0], strategy, Limits([8]))
    assert "\n" not in str(caught.value)


# ------------------------------------------------ what ends a text


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Beam(3)], ids=["greedy", "sample", "beam"])
def test_each_of_several_ends_ends_a_text_and_is_not_part_of_it(strategy):
    for likely in (3, 4, 5):
        table = torch.zeros(9)
        table[likely] = 60.0
        ((found, *_),) = generate(Urn(table, end=3), [0], strategy, Limits([8], stop_ids=[4, 5]))
        assert (found.tokens, found.ended) == ([], True)
        assert found.log_probability == pytest.approx(0, abs=1e-5)
    ((found, *_),) = generate(Urn(table, end=3), [0], strategy, Limits([8], stop_ids=[4]))  # 5 is then a word
    assert (found.tokens, found.ended) == ([5] * 8, False)


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Beam(3)], ids=["greedy", "sample", "beam"])
def test_a_text_that_is_too_short_takes_none_of_its_ends(strategy):
    table = torch.zeros(9)
    table[[3, 4, 5]] = 60.0
    ((found, *_),) = generate(Urn(table, end=3), [0], strategy, Limits([8], min_new_tokens=5, stop_ids=[4, 5]))
    assert len(found.tokens) == 5
    assert not {3, 4, 5} & set(found.tokens)
    assert found.ended


def test_without_any_end_a_text_is_as_long_as_it_may_be():
    for strategy in (Greedy(), Sample(), Beam(2)):
        ((found, *_),) = generate(Urn(torch.randn(9)), [0], strategy, Limits([7]))
        assert (len(found.tokens), found.ended) == (7, False)


def test_a_beam_with_several_ends_finds_the_best_text_of_all():
    """Every text written out: a Markov chain whose words 2 and 3 both end."""
    log = torch.randn(6, 6, generator=torch.Generator().manual_seed(8)).log_softmax(-1)
    ends, longest = (2, 3), 4

    class Chain(Urn):
        def step(self, tokens, state):
            return log[tokens].clone(), state

    texts = []
    for length in range(longest + 1):
        for hidden in itertools.product([0, 1, 4, 5], repeat=length):
            total = sum(log[one, other].item() for one, other in itertools.pairwise((0, *hidden)))
            if length == longest:
                texts.append((total, list(hidden), False))
            else:
                texts += [(total + log[(0, *hidden)[-1], end].item(), list(hidden), True) for end in ends]
    wanted = sorted(texts, reverse=True)[:5]
    found = generate(Chain(torch.zeros(6), end=2), [0], Beam(300, 0.0, num_return=5), Limits([longest], stop_ids=[3]))[
        0
    ]
    assert [one.tokens for one in found] == [hidden for _, hidden, _ in wanted]
    assert [one.ended for one in found] == [ended for _, _, ended in wanted]
    assert [one.score for one in found] == pytest.approx([total for total, _, _ in wanted], abs=1e-4)


def test_a_watcher_is_given_every_token_of_every_text_and_stops_its_own(model):
    heard: dict[tuple[int, int], list[list[int]]] = {}

    def watch(row, draw, tokens):
        heard.setdefault((row, draw), []).append(list(tokens))
        return (row, draw) == (1, 0) and len(tokens) == 3

    plain = generate(model, PROMPTS, Sample(num_samples=2), Limits([9] * 5))
    found = generate(model, PROMPTS, Sample(num_samples=2), Limits([9] * 5, on_token=watch))
    for row, (before, after) in enumerate(zip(plain, found, strict=True)):
        before, after = (sorted(several, key=lambda one: one.sample) for several in (before, after))
        for draw in (0, 1):
            tokens = after[draw].tokens
            assert heard.get((row, draw), []) == [tokens[: size + 1] for size in range(len(tokens))]
            if (row, draw) == (1, 0) and len(before[0].tokens) >= 3:
                assert tokens == before[0].tokens[:3]
                assert after[0].ended
            else:
                assert (tokens, after[draw].ended) == (before[draw].tokens, before[draw].ended)


def test_a_translator_samples_as_it_did_without_draws():
    """The first draw of an input is what it gets with one."""
    model = example_of("transformer").model()
    source = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0], [10, 2, 0, 0]])
    limits = Limits([10] * 3)
    single = generate(model, source, Sample(seed=3), limits)
    several = generate(model, source, Sample(seed=3, num_samples=3), limits)
    for (one,), many in zip(single, several, strict=True):
        assert (one.tokens, one.ended) == next((found.tokens, found.ended) for found in many if found.sample == 0)
