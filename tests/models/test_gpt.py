"""GPT: the published sizes, how it starts, and what its settings refuse."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.errors import ConfigError, InputError
from regard.models.gpt import GPT, SIZES, GPTConfig

TINY = GPTConfig(vocab_size=40, context=8, width=24, heads=3, layers=2)


def count(config):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in GPT(config).parameters())


def test_the_sizes_have_the_published_parameters():
    assert {size: count(config) for size, config in SIZES.items()} == {
        "gpt2": 124_439_808,
        "gpt2-medium": 354_823_168,
        "gpt2-large": 774_030_080,
        "gpt2-xl": 1_557_611_200,
    }


def test_the_count_by_hand():
    width, vocab_size, context = 768, 50_257, 1024
    attention = 4 * (width * width + width)
    feed_forward = 8 * width * width + 5 * width
    norm = 2 * width
    tables = (vocab_size + context) * width
    assert count(SIZES["gpt2"]) == tables + 12 * (attention + feed_forward + 2 * norm) + norm
    untied = SIZES["gpt2"].model_copy(update={"tie_embeddings": False})
    assert count(untied) == count(SIZES["gpt2"]) + vocab_size * width


def test_matrices_start_small_and_what_a_block_adds_smaller_the_more_blocks_there_are():
    model = GPT(GPTConfig(vocab_size=500, context=100, width=64, heads=4, layers=8, tie_embeddings=False))
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
    model = GPT(GPTConfig(vocab_size=1000, context=64, width=64, heads=4, layers=4)).eval()
    ids = torch.randint(1000, (8, 65))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.1)


def test_a_block_is_the_papers_wiring():
    """The norm before each sublayer, its output added, and one more norm at the end."""
    model = GPT(TINY).eval()
    ids = torch.randint(40, (2, 5))
    hidden = model.embedding.weight[ids] + model.positions.weight[:5]
    for block in model.blocks:
        hidden = hidden + block.attention(block.norm_attention(hidden))
        hidden = hidden + block.feed_forward(block.norm_feed_forward(hidden))
    assert_close(model(ids), model.norm(hidden) @ model.embedding.weight.T)


def test_dropout_stands_on_the_embedding_and_on_every_sublayer():
    model = GPT(TINY).train()
    calls = []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.register_forward_hook(lambda *_: calls.append(1))
    model(torch.tensor([[5, 2]]))
    assert len(calls) == 1 + 2 * 2


def test_more_tokens_than_the_context_are_refused():
    model = GPT(TINY).eval()
    assert model(torch.full((1, 8), 5)).shape == (1, 8, 40)
    with pytest.raises(InputError, match="9 tokens, but this model learned positions for 8; shorten the input"):
        model(torch.full((1, 9), 5))
    with pytest.raises(InputError, match="9 tokens, but this model learned positions for 8"):
        model.start([[5], [5] * 10])
    state = model.start([[5] * 8])
    _, state = model.step(state.first, state)
    with pytest.raises(InputError, match="9 tokens, but this model learned positions for 8"):
        model.step(torch.tensor([5]), state)


@torch.no_grad()
def test_a_short_text_goes_on_where_a_long_one_beside_it_had_to_stop():
    model = GPT(TINY).eval()
    state = model.start([[5] * 8, [6]])
    _, state = model.step(state.first, state)
    state.reorder(torch.tensor([1]))  # the first row is full
    text = [7, 8, 9, 10, 11, 12, 13]
    for number, token in enumerate(text, 1):
        logits, state = model.step(torch.tensor([token]), state)
        assert_close(logits[0], model(torch.tensor([[6, *text[:number]]]))[0, -1], atol=1e-5, rtol=1e-4)
    with pytest.raises(InputError, match="9 tokens, but this model learned positions for 8"):
        model.step(torch.tensor([14]), state)


def test_texts_packed_in_a_row_have_a_context_each():
    model = GPT(TINY).eval()
    ids = torch.randint(40, (1, 14))
    assert_close(model(ids, torch.tensor([[1] * 6 + [2] * 8]))[:, 6:], model(ids[:, 6:]))
    with pytest.raises(InputError, match="9 tokens, but this model learned positions for 8"):
        model(ids, torch.tensor([[1] * 5 + [2] * 9]))


def test_a_width_that_does_not_divide_is_refused_with_one_that_does():
    with pytest.raises(ConfigError, match=r"^model.width=30 does not divide into model.heads=4; try model.width=28$"):
        GPTConfig(vocab_size=40, width=30, heads=4)


@pytest.mark.parametrize("name", ["bos_id", "eos_id"])
def test_symbols_must_be_ids(name):
    with pytest.raises(ConfigError, match=f"^model.special_ids.{name}=40, but there are only 40 ids$"):
        GPTConfig(vocab_size=40, special_ids={name: 40})
    assert getattr(GPTConfig(vocab_size=40, special_ids={name: 39}).special_ids, name) == 39
