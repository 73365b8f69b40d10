"""The recorded step: the same tokens as the model's plain step, whatever happens to the rows between."""

import gc

import pytest
import torch
from torch.testing import assert_close

from regard import ops
from regard.errors import InputError
from regard.generation import Beam, Greedy, Sample, generate
from regard.generation.decode import Limits
from regard.generation.engine import PREFILL_ROWS, Engine, engine_for
from regard.generation.recording import UnrecordableError, record
from regard.inspection.capture import capture
from regard.layers.quantized import pack_layers
from regard.models import build
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import EXAMPLES, Llama
from tests.ops.forms import needs_kernels

pytestmark = needs_kernels
PROMPTS = [[3, 4, 5], [7], [9, 10, 11, 12, 13, 20], [8, 8]]
STRATEGIES = [Greedy(), Greedy(scored=False), Beam(3), Sample(num_samples=3, seed=4), Greedy(repetition_penalty=1.3)]


def loud(config):
    """Random weights, so large that the best token is clearly ahead."""
    torch.manual_seed(0)
    model = build(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(mean=float(weight.dim() == 1), std=0.3)
    return model


@pytest.fixture
def model():
    return loud(EXAMPLES[0])


def texts(model, strategy, prompts=PROMPTS):
    found = generate(model, prompts, strategy, Limits([10, 20, 15, 3][: len(prompts)]))
    return [[one.tokens for one in several] for several in found]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize(
    "config", [*EXAMPLES, GPTConfig(vocab_size=40, context=32, width=24, heads=3, layers=2)], ids=str
)
def test_every_strategy_finds_the_same_texts(config, strategy):
    model = loud(config)
    assert texts(Engine(model), strategy) == texts(model, strategy)


@torch.inference_mode()
@pytest.mark.parametrize("bits", [4, 8])
def test_packed_layers_too(model, bits):
    """Rounded activations: where the two differ in a last bit, they may round to neighboring levels."""
    pack_layers(model, bits)
    ids = torch.randint(3, 40, (1, 12), generator=torch.Generator().manual_seed(1))
    wanted = model(ids)[0]
    found = torch.cat([one_step(Engine(model), ids[0, :length].tolist()) for length in range(1, 13)])
    assert_close(found, wanted, rtol=0, atol=0.02 * wanted.abs().max().item())


def one_step(engine, prompt):
    state = engine.start([prompt])
    return engine.step(state.first, state)[0]


@torch.inference_mode()
def test_logits_are_the_models(model):
    engine = Engine(model)
    state, plain = engine.start(PROMPTS), model.start(PROMPTS)
    tokens = state.first
    assert torch.equal(tokens, plain.first)
    for _ in range(20):
        (found, state), (wanted, plain) = engine.step(tokens, state), model.step(tokens, plain)
        assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        tokens = wanted.argmax(-1)


@torch.inference_mode()
def test_rows_leave_join_and_change_places(model):
    engine = Engine(model)
    state, plain = engine.start(PROMPTS), model.start(PROMPTS)
    tokens = state.first
    for rows in ([3, 1, 0, 2], [2, 2, 0], [1, 0, 0, 2, 1], [4], [0, 0, 0]):
        (_, state), (wanted, plain) = engine.step(tokens, state), model.step(tokens, plain)
        order = torch.tensor(rows)
        state.reorder(order)
        plain.reorder(order)
        tokens = wanted.argmax(-1)[order]
        assert len(set(state.slots)) == len(rows)
        assert_close(engine.step(tokens, state)[0], model.step(tokens, plain)[0], rtol=1e-4, atol=1e-4)
        tokens = (tokens + 1) % 40


def test_a_long_prompt_is_read_in_parts_and_the_cache_grows():
    model = loud(GPTConfig(vocab_size=40, context=700, width=16, heads=2, layers=1))
    prompt = torch.randint(3, 40, (3 * PREFILL_ROWS + 5,), generator=torch.Generator().manual_seed(1)).tolist()
    engine, prompts = Engine(model), [prompt, prompt[:7]]
    assert texts(engine, Greedy(), prompts) == texts(model, Greedy(), prompts)
    assert engine._program.capacity == 512


def test_two_states_at_once_do_not_meet(model):
    engine = Engine(model)
    one, other = engine.start([[3, 4, 5]]), engine.start([[9, 10, 11, 12]])
    assert not set(one.slots) & set(other.slots)
    found = engine.step(one.first, one)[0]
    assert_close(found, one_step(Engine(model), [3, 4, 5]))
    taken = other.slots
    del other
    gc.collect()
    assert engine.start([[6]]).slots == taken  # free again


@torch.inference_mode()
def test_rows_join_between_the_steps_of_others(model):
    engine = Engine(model, slots=2)
    state = engine.start([])
    texts = []  # of each row, all its tokens
    for prompt in PROMPTS:  # more than there are slots
        state.join(engine.start([prompt]))
        texts.append([*prompt[:-1]])
        tokens = torch.tensor([3 + len(text) for text in texts])
        found, state = engine.step(tokens, state)
        texts = [[*text, token] for text, token in zip(texts, tokens.tolist(), strict=True)]
        wanted = torch.stack([model(torch.tensor([text]))[0, -1] for text in texts])
        assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert state.first.tolist() == [prompt[-1] for prompt in PROMPTS]
    state.reorder(torch.tensor([2]))
    texts = [texts[2]]
    state.join(engine.start([[5, 6]]))
    assert len(set(state.slots)) == 2
    found, _ = engine.step(torch.tensor([9, 6]), state)
    assert_close(found[0], model(torch.tensor([[*texts[0], 9]]))[0, -1], rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="same engine"):
        state.join(Engine(model).start([[5]]))


@torch.inference_mode()
def test_several_tokens_at_once_and_the_last_of_them_forgotten(model):
    engine = Engine(model)
    state = engine.start([[3], [7]])
    engine.read([[3, 4], []], state)
    found, state = engine.step_many([[5], [7, 8, 9]], state)
    wanted = torch.cat([model(torch.tensor([[3, 4, 5]]))[0, -1:], model(torch.tensor([[7, 8, 9]]))[0]])
    assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    state.rewind([2, 1])
    found, state = engine.step_many([[6, 7], [11]], state)
    wanted = torch.cat([model(torch.tensor([[3, 4, 6, 7]]))[0, -2:], model(torch.tensor([[7, 11]]))[0, -1:]])
    assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="lengths"):
        state.rewind([9, 1])


def test_more_rows_than_a_program_has_room_for(model):
    prompts = [[3 + number % 30, 5] for number in range(PREFILL_ROWS + 3)]
    limits = Limits([2] * len(prompts))
    found, wanted = (generate(one, prompts, Greedy(), limits) for one in (Engine(model), model))
    assert [one[0].tokens for one in found] == [one[0].tokens for one in wanted]


def test_an_empty_prompt_is_refused(model):
    with pytest.raises(InputError, match="prompt 2 has no tokens"):
        Engine(model).start([[1], []])


def test_ids_and_positions_that_do_not_exist_are_refused(model):
    program = record(model, 4, 2, 16)
    right = [torch.tensor([3, 4]), torch.tensor([0, 1]), torch.tensor([0, 15]), torch.tensor([1])]
    assert program.run(*right).shape == (1, 40)
    for part, wrong in ((0, 40), (0, -1), (1, 2), (1, -1), (2, 16), (2, -1), (3, 2), (3, -1)):
        given = [one.clone() for one in right]
        given[part][-1] = wrong
        with pytest.raises(IndexError):
            program.run(*given)
    with pytest.raises(IndexError):  # more rows than there is room for
        program.run(*(torch.zeros(5, dtype=torch.long) for _ in range(3)), torch.tensor([0]))
    with pytest.raises(ValueError, match="ids, slots"):
        program.run(right[0], right[1][:1], right[2], right[3])


# ------------------------------------------------ where the plain step is taken


class OwnStep(Llama):
    def step(self, tokens, state):
        logits, state = super().step(tokens, state)
        return logits.roll(1, -1), state


class OwnBlock(GPT):
    def _run_blocks(self, hidden, mask, caches=None):
        return super()._run_blocks(hidden.tanh(), mask, caches)


def test_a_step_of_ones_own_is_not_recorded(caplog):
    caplog.set_level("DEBUG")
    assert engine_for(OwnStep(EXAMPLES[0])) is None
    assert "a step of its own" in caplog.text


def test_an_operation_without_an_instruction_is_named(caplog):
    caplog.set_level("DEBUG")
    model = OwnBlock(GPTConfig(vocab_size=40, context=32, width=24, heads=3, layers=2))
    with pytest.raises(UnrecordableError, match="tanh"):
        record(model, 4, 1, 16)
    assert engine_for(model) is None
    assert "tanh" in caplog.text


def test_an_activation_of_ones_own_is_not_left_out(model):
    model.blocks[1].feed_forward.activation = torch.tanh
    with pytest.raises(UnrecordableError, match="activation"):
        record(model, 4, 1, 16)


def test_watched_models_and_kernels_that_are_off_take_the_plain_step(model):
    with capture(model, "blocks.*.attention.weights"):
        assert engine_for(model) is None
        model(torch.tensor([[3, 4]]))
    with ops.disabled():
        assert engine_for(model) is None
    assert engine_for(model.double()) is None
