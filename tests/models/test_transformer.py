"""The Transformer: the paper's sizes, packed rows, and what its settings refuse."""

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.testing import assert_close

from regard import ops
from regard.errors import ConfigError, InputError
from regard.layers import masks
from regard.layers.varlen import encode_unpadded
from regard.models.transformer import SIZES, Transformer, TransformerConfig

TINY = TransformerConfig(vocab_size=40, width=24, heads=3, layers=2, feed_forward=32)


def count(config):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(config).parameters())


def test_base_and_big_have_the_papers_parameters():
    """Table 3 says 65 and 213 million with a shared vocabulary of about 37,000."""
    assert count(SIZES["base"]) == 63_082_496
    assert count(SIZES["big"]) == 214_245_376
    assert count(SIZES["base"]) == pytest.approx(65e6, rel=0.03)
    assert count(SIZES["big"]) == pytest.approx(213e6, rel=0.01)


def test_the_count_by_hand():
    width, hidden, vocab_size = 512, 2048, 37_000
    attention = 4 * (width * width + width)
    feed_forward = 2 * width * hidden + hidden + width
    norm = 2 * width
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    assert count(SIZES["base"]) == 6 * encoder + 6 * decoder + vocab_size * width


def read(model, source, mask):
    return encode_unpadded(model._encode, source, mask, encoder=model.encoder, head_width=16)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_source_is_encoded_without_padding_as_with_it(norm, positions, monkeypatch):
    config = TransformerConfig(
        vocab_size=50, width=64, heads=4, layers=2, feed_forward=96, max_positions=32, norm=norm, positions=positions
    )
    model = Transformer(config).eval()
    source = torch.randint(4, 50, (9, 30), generator=torch.Generator().manual_seed(1))
    for row, length in enumerate([30, 1, 7, 16, 17, 29, 30, 2, 11]):
        source[row, length:] = config.special_ids.pad_id
    mask = masks.padding_mask(source, config.special_ids.pad_id)
    real = mask[:, 0, 0]
    with torch.inference_mode():
        with ops.disabled():
            padded = read(model, source, mask)
        for tokens in (1, 40, 2048):  # read at once
            monkeypatch.setattr("regard.layers.varlen.MAX_TOKENS", tokens)
            assert_close(read(model, source, mask)[real], padded[real], atol=1e-5, rtol=1e-5)


def test_embeddings_enter_with_variance_one_and_serve_as_the_output_too():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=2000, width=256, heads=4, layers=1, feed_forward=64))
    assert model.embedding(torch.arange(2000)).var().item() == pytest.approx(1.0, rel=0.05)
    assert not [name for name, _ in model.named_parameters() if "output" in name and "attention" not in name]


def test_matrices_start_by_xavier_and_biases_at_zero():
    torch.manual_seed(0)
    linear = (
        Transformer(TransformerConfig(vocab_size=50, width=64, heads=4, layers=1)).encoder.blocks[0].feed_forward.expand
    )
    bound = (6 / (64 + 2048)) ** 0.5
    assert linear.weight.abs().max().item() <= bound
    assert linear.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert not linear.bias.any()


def test_dropout_stands_where_the_paper_has_it():
    """On every sublayer's output and on embedding plus position: 2 + 3 a layer pair, and 2."""
    model = Transformer(TINY).train()
    calls = []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.register_forward_hook(lambda *_: calls.append(1))
    model(torch.tensor([[5, 2]]), torch.tensor([[1, 5]]))
    assert len(calls) == 2 * 2 + 2 * 3 + 2


def test_memory_is_projected_once_a_sentence():
    torch.manual_seed(0)
    model = Transformer(TINY).eval()
    calls = []
    for block in model.decoder.blocks:
        block.cross_attention.key.register_forward_hook(lambda *_: calls.append(1))
    state = model.start(torch.tensor([[5, 6, 2]]))
    for _ in range(4):
        _, state = model.step(torch.tensor([5]), state)
    assert len(calls) == 2


def test_a_width_that_does_not_divide_is_refused_with_one_that_does():
    with pytest.raises(ConfigError, match=r"model.width=30 does not divide into model.heads=4; try model.width=28"):
        TransformerConfig(vocab_size=40, width=30, heads=4)


def test_an_unknown_fact_is_refused():
    with pytest.raises(ValidationError, match="widht"):
        TransformerConfig(vocab_size=40, widht=8)


def test_sinusoidal_positions_have_no_longest_and_learned_ones_do():
    long = torch.full((1, 50), 5)
    short = TINY.model_copy(update={"max_positions": 8})
    assert Transformer(short).eval()(long, long).shape == (1, 50, 40)
    learned = short.model_copy(update={"positions": "learned"})
    with pytest.raises(InputError, match="50 tokens"):
        Transformer(learned)(long, long)


def test_the_row_of_padding_is_zero_and_does_not_learn():
    model = Transformer(TINY)
    logits = model(torch.randint(3, 40, (2, 5)), torch.randint(3, 40, (2, 4)))
    logits.square().sum().backward()
    padding = TINY.special_ids.pad_id
    assert not model.embedding.weight[padding].any()
    assert not model.embedding.weight.grad[padding].any()
    assert model.embedding.weight.grad[padding + 1 :].any(dim=1).all()


def test_a_quiet_start_hands_words_through():
    model = Transformer(TINY.model_copy(update={"norm": "pre", "zero_init_residual": True}))
    hidden = torch.randn(2, 5, 24)
    assert torch.equal(model.encoder.blocks[0](hidden, None), hidden)


def test_symbols_must_be_ids():
    with pytest.raises(ConfigError, match="only 40 ids"):
        TransformerConfig(vocab_size=40, width=8, heads=2, special_ids={"pad_id": 40, "bos_id": 1, "eos_id": 2})
