"""Speculative decoding: the same texts as without a draft, in fewer steps; samples with the model's distribution."""

import math
from collections import Counter

import pytest
import torch

from regard.errors import ConfigError, InputError
from regard.generation import DraftModel, Greedy, PromptLookup, Sample, generate
from regard.generation.decode import Limits
from regard.generation.engine import Engine
from regard.models import build, gpt
from regard.models.llama import EXAMPLES, LlamaConfig
from tests.ops.forms import needs_kernels

pytestmark = needs_kernels
CONFIG = LlamaConfig(vocab_size=24, context=64, width=16, heads=2, num_kv_heads=1, layers=2, feed_forward=32)
PROMPTS = [[3, 4, 5, 3, 4], [7], [9, 10, 11, 12, 9, 10, 11], [8, 8, 8]]
STRATEGIES = [
    Greedy(),
    Greedy(scored=False),
    Greedy(repetition_penalty=1.4),
    Sample(seed=3),
    Sample(temperature=0.7, top_p=0.9, num_samples=3, seed=4),
]


def model_of(config=CONFIG, seed=0, std=0.3):
    torch.manual_seed(seed)
    model = build(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(mean=float(weight.dim() == 1), std=std)
    return model


class Counted(Engine):
    """Counts its steps."""

    steps = 0

    def _step(self, *given):
        self.steps += 1
        return super()._step(*given)


def drafts(model):
    near = model_of()
    with torch.no_grad():
        for weight in near.parameters():
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    return {
        "prompt": PromptLookup(),
        "single tokens": PromptLookup(num_guesses=3, min_match=1),
        "itself": DraftModel(Engine(model)),
        "near": DraftModel(Engine(near)),
        "another": DraftModel(Engine(model_of(seed=5))),
        "short context": DraftModel(Engine(model_of(CONFIG.model_copy(update={"context": 12})))),
    }


def texts(engine, strategy, limits):
    found = generate(engine, PROMPTS, strategy, limits)
    return [[(one.tokens, one.ended, one.sample) for one in several] for several in found]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("name", ["prompt", "single tokens", "itself", "near", "another", "short context"])
@pytest.mark.parametrize("limits", [{}, {"min_new_tokens": 6, "stop_ids": [5, 11]}], ids=["", "stop"])
def test_the_texts_are_those_without_a_draft(strategy, name, limits):
    model = model_of()
    given = Limits([10, 1, 40, 3], prompts=PROMPTS, **limits)
    wanted = texts(Engine(model), strategy, given)
    drafted = type(strategy)(**{**vars(strategy), "draft": drafts(model)[name]})
    assert texts(Engine(model), drafted, given) == wanted


def test_log_probabilities_too():
    model, given = model_of(), Limits([20] * 4, prompts=PROMPTS)
    wanted = generate(Engine(model), PROMPTS, Greedy(), given)
    found = generate(Engine(model), PROMPTS, Greedy(draft=PromptLookup()), given)
    for one, other in zip(found, wanted, strict=True):
        assert one[0].log_probability == pytest.approx(other[0].log_probability, abs=1e-4)


def test_a_stopped_text_stops_at_the_same_token():
    model = model_of()
    given = Limits([30] * 4, prompts=PROMPTS, on_token=lambda row, _, tokens: len(tokens) == 5 + row)
    found = texts(Engine(model), Greedy(draft=DraftModel(Engine(model))), given)
    assert [len(one[0][0]) for one in found] == [5, 6, 7, 8]
    assert found == texts(Engine(model), Greedy(), given)


def test_right_guesses_save_steps():
    model = model_of()
    engine = Counted(model)
    generate(engine, [[3, 4]], Greedy(draft=DraftModel(Engine(model))), Limits([40]))
    assert engine.steps <= 40 / 5 + 1
    engine = Counted(model)
    generate(engine, [[3, 4]], Sample(seed=1, draft=DraftModel(Engine(model))), Limits([40]))
    assert engine.steps <= 40 / 5 + 1


def test_the_context_may_be_filled_to_its_end():
    model = model_of(EXAMPLES[0])
    room = model.config.context - 2 + 1
    for draft in (PromptLookup(min_match=1), DraftModel(Engine(model))):
        found = generate(Engine(model), [[3, 4]], Greedy(draft=draft), Limits([room], min_new_tokens=room))
        assert len(found[0][0].tokens) == room


def test_samples_have_the_models_distribution():
    """Chi-square of pairs of tokens against the model's own probabilities, with a draft that is often wrong."""
    model, count = model_of(LlamaConfig(**{**CONFIG.model_dump(), "vocab_size": 6}), std=0.5), 1_000
    draft = DraftModel(Engine(model_of(LlamaConfig(**{**CONFIG.model_dump(), "vocab_size": 6}), seed=7, std=0.5)))
    strategy = Sample(temperature=1.3, num_samples=count, seed=11, draft=draft)
    found = generate(Engine(model), [[2, 3]], strategy, Limits([3], min_new_tokens=3))
    seen = Counter(tuple(one.tokens[:2]) for one in found[0])
    banned = {model.config.special_ids.pad_id, model.config.special_ids.eos_id}
    ids = [token for token in range(6) if token not in banned]

    def after(tokens):
        with torch.inference_mode():
            logits = model(torch.tensor([tokens]))[0, -1] / 1.3
        return dict(zip(ids, logits[ids].softmax(0).tolist(), strict=True))

    statistic, cells = 0.0, 0
    for one, chance in after([2, 3]).items():
        for other, next_chance in after([2, 3, one]).items():
            expected = count * chance * next_chance
            if expected >= 5:
                statistic += (seen[one, other] - expected) ** 2 / expected
                cells += 1
    assert cells >= 4
    assert statistic < cells + 4 * math.sqrt(2 * cells)  # four standard deviations above its mean


def test_a_prompt_may_be_longer_than_the_context_of_the_draft():
    """Positions that the draft has no embeddings for are not read; texts that fit are still guessed."""
    config = gpt.EXAMPLES[0]
    model, small = (Engine(model_of(config.model_copy(update={"context": context}))) for context in (64, 16))
    prompts, limits = [[3 + n % 5 for n in range(30)], [4, 5]], Limits([12, 12])
    wanted, found = (generate(model, prompts, Greedy(draft=draft), limits) for draft in (None, DraftModel(small)))
    assert [one.tokens for (one,) in found] == [one.tokens for (one,) in wanted]


def test_a_model_without_a_recorded_step_is_refused():
    with pytest.raises(InputError, match="leave out --draft"):
        generate(model_of(), [[3]], Greedy(draft=PromptLookup()), Limits([3]))


@pytest.mark.parametrize("settings", [{"num_guesses": 0}, {"num_guesses": 8}, {"min_match": 5}, {"min_match": 0}])
def test_settings_that_cannot_be(settings):
    with pytest.raises(ConfigError, match="wanted 1 to"):
        PromptLookup(**settings)
