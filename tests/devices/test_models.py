"""Every model on an accelerator: nothing is made on the host, and the host never waits but where it must."""

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ConfigError
from regard.generation import Beam, Greedy, Sample, generate
from regard.layers.quantized import quantize
from regard.runtime import Runtime
from tests.contracts.examples import CAPTIONERS, CAUSAL_LM, EXAMPLES, SEQ2SEQ, named
from tests.devices.accelerator import DEVICE, OnAccelerator, accelerator, to_host
from tests.devices.drive import inputs, limits, outputs, prompts

HOST, THERE = Runtime(), Runtime(DEVICE)
GENERATORS = [*SEQ2SEQ, *CAUSAL_LM, *CAPTIONERS]
STRATEGIES = {
    "greedy": Greedy(),
    "shortlist": Greedy(scored=False),
    "penalty": Greedy(repetition_penalty=1.3),
    "sample": Sample(num_samples=2),
    "nucleus": Sample(top_k=7, top_p=0.9, min_p=0.01),
    "beam": Beam(3),
}


@pytest.fixture(params=EXAMPLES, ids=named)
def example(request):
    return request.param


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_forward_and_backward_stay_there_and_give_the_numbers_of_the_host(example):
    model = example.model()
    wanted = outputs(model, inputs(example, HOST))
    with accelerator({}):
        model.to(DEVICE)
        found = outputs(model, inputs(example, THERE))
        sum(one.float().square().mean() for one in found).backward()
    assert all(isinstance(one, OnAccelerator) for one in found)
    assert all(parameter.grad is None or isinstance(parameter.grad, OnAccelerator) for parameter in model.parameters())
    for one, other in zip(to_host(found), wanted, strict=True):
        assert_close(one.detach(), other.detach(), atol=2e-5, rtol=1e-4)


def test_dropout_draws_there(example):
    model = example.model().train()
    with accelerator({}):
        model.to(DEVICE)
        assert all(isinstance(one, OnAccelerator) for one in outputs(model, inputs(example, THERE)))


@pytest.mark.parametrize("example", GENERATORS, ids=named)
@torch.no_grad()
def test_prefill_step_and_reorder_stay_there(example):
    model = example.model()
    with accelerator() as mode:
        model.to(DEVICE)
        state = model.start(prompts(example, THERE))
        for _ in range(2):
            logits, state = model.step(state.first, state)
            assert isinstance(logits, OnAccelerator)
            state.reorder(torch.tensor([2, 0, 0], device=DEVICE))
        state.reorder(torch.tensor([[0, 0], [1, 1], [2, 2]], device=DEVICE))
        model.step(state.first, state)
    assert set(mode.used) <= {("layers/decoding.py", "kept_inputs")}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("example", GENERATORS, ids=named)
def test_generation_gives_the_texts_of_the_host(example, strategy):
    model = example.loud_model()
    wanted = generate(model, prompts(example, HOST), STRATEGIES[strategy], limits())
    with accelerator():
        model.to(DEVICE)
        found = generate(model, prompts(example, THERE), STRATEGIES[strategy], limits())
    assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in wanted]


def test_int8_is_refused_there(example):
    model = example.model()
    with accelerator({}), pytest.raises(ConfigError, match="int8 is for the CPU"):
        quantize(model.to(DEVICE))
