"""`regard cost --world`: simulated memory, communication by formula."""

import pytest
import torch

from regard.errors import ConfigError
from regard.experiments import planning
from regard.experiments.training_memory import Setup, training_memory
from regard.models.gpt import GPTConfig

CONFIG = GPTConfig(vocab_size=512, context=64, width=64, heads=4, layers=6, dropout=0.0)


def memory(mode, world, *, checkpointed=False, config=CONFIG):
    return training_memory(config, Setup(mode, world, min(world, 4), checkpointed, torch.float32, 2, 64))


def test_memory_is_sharded_by_the_number_of_ranks():
    numbers = planning.parameters_of(CONFIG)
    ddp, fsdp, hsdp = memory("ddp", 2), memory("fsdp", 8), memory("hsdp", 8)
    assert ddp.parameters == ddp.gradients == 4 * numbers
    assert fsdp.parameters == pytest.approx(4 * numbers / 8, rel=0.01)
    assert hsdp.parameters == pytest.approx(4 * numbers / 4, rel=0.01)
    for one in (ddp, fsdp, hsdp):
        assert one.optimizer == pytest.approx(2 * one.parameters, rel=0.01)
        assert one.peak >= one.parameters + one.optimizer
    assert memory("ddp", 2, checkpointed=True).peak < ddp.peak


def test_layers_are_extrapolated_exactly():
    eight = CONFIG.model_copy(update={"layers": 8})
    by_more = training_memory.__globals__["_simulated"](eight, Setup("fsdp", 4, 4, False, torch.float32, 2, 64))
    assert memory("fsdp", 4, config=eight).peak == pytest.approx(by_more.peak, rel=0.02)


def test_bytes_that_a_rank_sends():
    setup = Setup("ddp", 4, 4, False, torch.bfloat16, 1, 1)
    assert planning.bytes_sent(1000, setup) == (3 / 4 * 8 * 1000, 0)
    assert planning.bytes_sent(1000, Setup("fsdp", 8, 4, False, torch.bfloat16, 1, 1)) == (0, 7 / 8 * 8 * 1000)
    within, between = planning.bytes_sent(1000, Setup("hsdp", 8, 4, False, torch.bfloat16, 1, 1))
    assert (within, between) == (3 / 4 * 8 * 1000, 2 * 1 / 2 * 4 * 1000 / 4)


def test_mistakes_are_one_line():
    with pytest.raises(ConfigError, match="wanted v100, a100"):
        planning.device_named("abacus")
    with pytest.raises(ConfigError, match="wanted numbers of ranks"):
        planning.worlds_of("8,many")
