"""Greedy without scores: the same texts, found without all logits, and no answer where there is none."""

import math

import pytest
import torch

from regard import ops
from regard.errors import InputError
from regard.generation import Greedy, Sample, generate
from regard.generation.decode import Limits
from regard.layers.embeddings import Embedding
from regard.layers.quantized import quantize
from regard.models import build
from regard.models.transformer import Transformer
from tests.contracts.examples import CAUSAL_LM, SEQ2SEQ, example_of, named
from tests.ops.forms import needs_int8

pytestmark = needs_int8

PROMPTS = [[7, 8, 9, 10], [11], [12, 13]] * 5  # more than few


@pytest.fixture(autouse=True)
def _small_tables_too(monkeypatch):
    monkeypatch.setattr("regard.ops.shortlist.MIN_SIZE", 0)


def inputs_of(example):
    if example in CAUSAL_LM:
        return PROMPTS
    source = torch.randint(4, 30, (15, 9), generator=torch.Generator().manual_seed(3))
    source[::2, 6:] = example.config.special_ids.pad_id
    return source


def limits_of(**more):
    return Limits([4, 8, 12] * 5, **more)


@pytest.mark.parametrize("example", [*SEQ2SEQ, *CAUSAL_LM], ids=named)
@pytest.mark.parametrize(
    "limits", [{}, {"min_new_tokens": 3}, {"vocab_size": 20}, {"stop_ids": [5, 6], "min_new_tokens": 2}], ids=str
)
def test_the_texts_are_the_scored_ones(example, limits, monkeypatch):
    model, inputs = example.loud_model().eval(), inputs_of(example)
    wanted = generate(model, inputs, Greedy(), limits_of(**limits))
    if hasattr(model, "argmax_shortlist"):
        monkeypatch.setattr(Embedding, "logits", None)
    found = generate(model, inputs, Greedy(scored=False), limits_of(**limits))
    assert [one[0].tokens for one in found] == [one[0].tokens for one in wanted]
    assert [one[0].ended for one in found] == [one[0].ended for one in wanted]
    if hasattr(model, "argmax_shortlist"):
        assert all(math.isnan(one[0].log_probability) and math.isnan(one[0].score) for one in found)


@pytest.mark.parametrize("example", CAUSAL_LM[:1], ids=named)
def test_a_penalty_int8_and_a_lack_of_kernels_go_by_the_logits(example):
    model = example.loud_model().eval()
    pressed = generate(model, PROMPTS, Greedy(1.5, scored=False), limits_of())
    assert [one[0].tokens for one in pressed] == [
        one[0].tokens for one in generate(model, PROMPTS, Greedy(1.5), limits_of())
    ]
    assert all(math.isfinite(one[0].log_probability) for one in pressed)
    with ops.disabled():
        assert math.isfinite(generate(model, PROMPTS, Greedy(scored=False), limits_of())[0][0].log_probability)
    quantize(model)
    assert math.isfinite(generate(model, PROMPTS, Greedy(scored=False), limits_of())[0][0].log_probability)
    assert Greedy(scored=False) != Greedy()
    assert not hasattr(Sample(), "scored")


@pytest.mark.parametrize("example", [example_of("gpt")], ids=named)
@torch.no_grad()
def test_damaged_weights_are_told(example):
    model = example.loud_model().eval()
    model.blocks[0].feed_forward.expand.weight[0, 0] = math.nan
    with pytest.raises(InputError, match="not finite"):
        generate(model, PROMPTS, Greedy(scored=False), limits_of())
    model = example.loud_model().eval()
    model.output_embeddings[3, 3] = math.inf  # the table itself: there is no screen of it
    with pytest.raises(InputError, match="not finite"):
        generate(model, PROMPTS, Greedy(scored=False), limits_of())


@torch.no_grad()
def test_weights_that_changed_since_are_seen():
    model = CAUSAL_LM[0].loud_model().eval()
    before = generate(model, PROMPTS, Greedy(scored=False), limits_of())
    model.output_embeddings.copy_(model.output_embeddings.flip(0))
    wanted = generate(model, PROMPTS, Greedy(), limits_of())
    found = generate(model, PROMPTS, Greedy(scored=False), limits_of())
    assert [one[0].tokens for one in found] == [one[0].tokens for one in wanted]
    assert [one[0].tokens for one in found] != [one[0].tokens for one in before]


@torch.no_grad()
def test_a_damaged_bias_is_told():
    example = next(one for one in SEQ2SEQ if one.kind == "transformer")
    model = build(example.config.model_copy(update={"output_bias": True})).eval()
    for damage in (math.nan, math.inf):
        model.output_bias[9] = damage
        with pytest.raises(InputError, match="not finite"):
            generate(model, inputs_of(example), Greedy(scored=False), limits_of())


def test_a_step_of_ones_own_is_taken_though_the_shortlist_is_inherited():
    example = next(one for one in SEQ2SEQ if one.kind == "transformer")

    class Mine(Transformer):
        def step(self, tokens, state):
            logits, state = super().step(tokens, state)
            logits[:, ::2] = -torch.inf
            return logits, state

    found = generate(Mine(example.config).eval(), inputs_of(example), Greedy(scored=False), limits_of(min_new_tokens=4))
    assert all(token % 2 for one in found for token in one[0].tokens)
    patched = Transformer(example.config).eval()
    patched.step = lambda tokens, state: _only(5, patched, tokens, state)
    found = generate(patched, inputs_of(example), Greedy(scored=False), limits_of(min_new_tokens=4))
    assert {token for one in found for token in one[0].tokens} == {5}


def test_logits_of_ones_own_are_used_though_the_shortlist_is_inherited():
    example = next(one for one in SEQ2SEQ if one.kind == "transformer")

    class OddLogits(Transformer):
        def logits(self, hidden):
            found = super().logits(hidden)
            found[:, ::2] = -torch.inf
            return found

    model = OddLogits(example.config).eval()
    found = generate(model, inputs_of(example), Greedy(scored=False), limits_of(min_new_tokens=4))
    assert all(token % 2 for one in found for token in one[0].tokens)


def _only(word, model, tokens, state):
    logits, state = Transformer.step(model, tokens, state)
    logits[:, word] = logits.max() + 1
    return logits, state


@pytest.mark.parametrize("strategy", [Greedy(), Greedy(scored=False)], ids=str)
def test_nothing_to_write_is_nothing(strategy):
    example = next(one for one in SEQ2SEQ if one.kind == "transformer")
    assert generate(example.model().eval(), inputs_of(example)[:0], strategy, Limits([])) == []
