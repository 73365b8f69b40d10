"""Llama: the published sizes, how it starts, and what its settings refuse."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.errors import ConfigError
from regard.models.llama import SIZES, Llama, LlamaConfig

TINY = LlamaConfig(vocab_size=40, context=8, width=24, heads=6, num_kv_heads=2, layers=2, feed_forward=32)


def count(config):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Llama(config).parameters())


def test_the_sizes_have_the_published_parameters():
    assert {size: count(config) for size, config in SIZES.items()} == {
        "smollm2-135m": 134_515_008,
        "smollm2-360m": 361_821_120,
        "llama-3.2-1b": 1_235_814_400,
    }


def test_the_count_by_hand():
    width, hidden, vocab_size = 576, 1536, 49_152
    attention = 2 * width * width + 2 * width * width // 3  # three heads share a key and a value
    assert (
        count(SIZES["smollm2-135m"]) == vocab_size * width + 30 * (attention + 3 * width * hidden + 2 * width) + width
    )
    biased = SIZES["smollm2-135m"].model_copy(update={"qkv_bias": True})
    assert count(biased) == count(SIZES["smollm2-135m"]) + 30 * (width + 2 * width // 3)
    untied = SIZES["smollm2-135m"].model_copy(update={"tie_embeddings": False})
    assert count(untied) == count(SIZES["smollm2-135m"]) + vocab_size * width


def test_matrices_start_small_and_what_a_block_adds_smaller_the_more_blocks_there_are():
    model = Llama(
        LlamaConfig(
            vocab_size=500,
            width=64,
            heads=4,
            num_kv_heads=2,
            layers=8,
            feed_forward=128,
            qkv_bias=True,
            tie_embeddings=False,
        )
    )
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            wanted = 0.02 / math.sqrt(2 * 8) if "attention.output" in name or "contract" in name else 0.02
            assert parameter.std().item() == pytest.approx(wanted, rel=0.05), name
            assert parameter.mean().item() == pytest.approx(0, abs=4 * wanted / parameter.numel() ** 0.5), name


def test_a_fresh_model_finds_all_words_about_as_likely():
    model = Llama(LlamaConfig(vocab_size=1000, width=64, heads=4, num_kv_heads=2, layers=4, feed_forward=128))
    ids = torch.randint(1000, (8, 65))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.1)


def test_a_block_is_norm_first_and_positions_only_turn():
    model = Llama(TINY)
    ids = torch.randint(40, (2, 5))
    apply_rotary = model.positions(torch.arange(5)).apply_rotary
    hidden = model.embedding.weight[ids]
    for block in model.blocks:
        hidden = hidden + block.attention(block.norm_attention(hidden), apply_rotary=apply_rotary)
        hidden = hidden + block.feed_forward(block.norm_feed_forward(hidden))
    assert_close(model(ids), model.norm(hidden) @ model.embedding.weight.T)


def test_a_norm_divides_by_the_root_of_the_mean_square():
    norm = Llama(TINY.model_copy(update={"norm_epsilon": 0.1})).blocks[0].norm_attention
    hidden = torch.randn(3, 24)
    assert_close(norm(hidden), hidden / (hidden.square().mean(-1, keepdim=True) + 0.1).sqrt())


@torch.no_grad()
def test_the_cache_holds_a_key_for_several_heads():
    model = Llama(TINY)
    state = model.start([[5, 6, 7], [8]])
    model.step(state.first, state)
    assert [cache.contents.key.shape for cache in state.caches] == [(2, 2, 3, 4)] * 2


def test_rotary_positions_have_no_longest():
    """Beyond the context it was trained for a model writes worse, but it writes."""
    assert Llama(TINY)(torch.full((1, 50), 5)).shape == (1, 50, 40)


def test_a_stretch_reaches_the_angles():
    stretched = TINY.model_copy(
        update={"rope_scaling": LlamaConfig(rope_scaling={"original_context": 16}).rope_scaling}
    )
    rates, slowed = Llama(TINY).positions.frequencies, Llama(stretched).positions.frequencies
    assert_close(slowed[1], rates[1] / 32)
    assert_close(
        Llama(SIZES["llama-3.2-1b"].model_copy(update={"layers": 1, "vocab_size": 4})).positions.frequencies[-1],
        torch.tensor(500_000 ** (-62 / 64) / 32),
    )


def test_a_width_that_does_not_divide_is_refused_with_one_that_does():
    with pytest.raises(ConfigError, match=r"^model.width=30 does not divide into model.heads=4; try model.width=28$"):
        LlamaConfig(vocab_size=40, width=30, heads=4, num_kv_heads=2)


def test_heads_that_do_not_share_evenly_are_refused():
    with pytest.raises(ConfigError, match=r"^model.heads=6 does not divide into model.num_kv_heads=4$"):
        LlamaConfig(vocab_size=40, width=24, heads=6, num_kv_heads=4)


def test_heads_of_an_odd_width_are_refused():
    message = r"^model.width=18 / model.heads=6 is odd; rotary embeddings rotate pairs of numbers$"
    with pytest.raises(ConfigError, match=message):
        LlamaConfig(vocab_size=40, width=18, heads=6, num_kv_heads=2)


def test_a_stretch_whose_bounds_cross_is_refused():
    with pytest.raises(
        ConfigError,
        match=r"^model.rope_scaling.high_freq_factor=1.0 is not above model.rope_scaling.low_freq_factor=1.0$",
    ):
        LlamaConfig(rope_scaling={"low_freq_factor": 1.0, "high_freq_factor": 1.0})


@pytest.mark.parametrize("name", ["bos_id", "eos_id"])
def test_symbols_must_be_ids(name):
    with pytest.raises(ConfigError, match=f"^model.special_ids.{name}=40, but there are only 40 ids$"):
        LlamaConfig(vocab_size=40, special_ids={name: 40})
    assert getattr(LlamaConfig(vocab_size=40, special_ids={name: 39}).special_ids, name) == 39
