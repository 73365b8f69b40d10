"""The captioner: the paper's equations written out beside it, and settings that cannot be."""

import pytest
import torch
from pydantic import ValidationError
from torch.testing import assert_close

from regard.errors import ConfigError
from regard.models.captioner import Captioner, CaptionerConfig

TINY = {"vocab_size": 30, "image_size": 32, "width": 16, "heads": 2, "feed_forward": 24}


@pytest.fixture
def pixels():
    return torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(3))


def written_out(model, pixels, target):
    """Xu 2015, 3.1.2 and 4.2: one picture, one step after the other, with nothing but the weights."""
    decoder, cell = model.decoder, model.decoder.cells[0]
    (grid,) = model.encoder(pixels[None])  # (P, D), the paper's a_i
    shown, kept = decoder.begins[0](grid.mean(0)).tanh().chunk(2)
    found = []
    for word in target.tolist():
        scores = torch.stack([decoder.similarity.score((decoder.query(shown) + decoder.key(a)).tanh()) for a in grid])
        weights = scores[:, 0].softmax(0)
        context = decoder.gate(shown).sigmoid() * sum(weight * a for weight, a in zip(weights, grid, strict=True))
        vector = decoder.embedding.weight[word] * 16**0.5
        gates = cell.input(vector) + cell.recurrent(shown) + decoder.context(context)
        enter, forget, new, show = gates.chunk(4)
        kept = forget.sigmoid() * kept + enter.sigmoid() * new.tanh()
        shown = show.sigmoid() * kept.tanh()
        deep = vector + decoder.output_state(shown) + decoder.output_context(context)
        found.append((decoder.output.weight @ deep, weights))
    return torch.stack([logits for logits, _ in found]), torch.stack([weights for _, weights in found])


@torch.no_grad()
def test_the_lstm_decoder_is_the_papers(pixels):
    model = Captioner(CaptionerConfig(**TINY)).eval()
    target = torch.tensor([[1, 7, 7, 12, 29], [1, 3, 9, 0, 0]])
    logits, weights = model.forward_with_attention(pixels, target)
    assert weights.shape == (2, 1, 5, 16)
    for row in range(2):
        wanted, looked = written_out(model, pixels[row], target[row])
        assert_close(logits[row], wanted, atol=1e-5, rtol=1e-4)
        assert_close(weights[row, 0], looked, atol=1e-6, rtol=1e-4)


@torch.no_grad()
def test_a_closed_gate_hides_the_picture_from_the_next_words(pixels):
    model = Captioner(CaptionerConfig(**TINY)).eval()
    torch.nn.init.zeros_(model.decoder.gate.weight)
    model.decoder.gate.bias.fill_(-1e4)
    for begin in model.decoder.begins:  # the other way in
        torch.nn.init.zeros_(begin.weight)
    logits = model(pixels, torch.tensor([[1, 7, 9], [1, 7, 9]]))
    assert_close(logits[0], logits[1])


@torch.no_grad()
def test_the_layers_above_the_one_that_looks_are_ordinary_ones(pixels):
    torch.manual_seed(1)
    model = Captioner(CaptionerConfig(**TINY, layers=3)).eval()
    target = torch.randint(3, 30, (2, 4))
    plain = model(pixels, target)
    model.decoder.cells[2].recurrent.weight.mul_(2)
    assert (model(pixels, target) - plain).abs().amax() > 1e-3


def test_heads_of_all_layers_are_shown_side_by_side(pixels):
    model = Captioner(CaptionerConfig(**TINY, decoder="transformer", layers=3)).eval()
    _, weights = model.forward_with_attention(pixels, torch.tensor([[1, 4, 5], [1, 6, 7]]))
    assert weights.shape == (2, 6, 3, 16)
    assert_close(weights.sum(-1), torch.ones(2, 6, 3))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"image_size": 60},
            "model.image_size=60 does not divide into cells of model.cell_size=8 pixels; try model.image_size=56",
        ),
        (
            {"image_size": 30, "cell_size": 6},
            "model.cell_size=6: convolutions halve an image; wanted 2, 4, 8, 16 or so",
        ),
        ({"width": 18}, "model.width=18 is no multiple of 4"),
        ({"heads": 3}, "model.width=16 does not divide into model.heads=3; try model.width=15"),
        ({"vocab_size": 4, "special_ids": {"eos_id": 4}}, "there are only 4 ids"),
    ],
)
def test_settings_that_cannot_be_say_what_to_do(changes, says):
    with pytest.raises((ConfigError, ValidationError), match=says):
        CaptionerConfig(**TINY | changes)


def test_patches_may_have_cells_of_any_size():
    assert CaptionerConfig(**TINY | {"image_size": 30, "cell_size": 6, "width": 18}, encoder="patches").num_cells == 25


def test_a_picture_of_another_size_is_a_mistake_of_the_programmer():
    with pytest.raises(AssertionError, match=r"pixels \(1, 3, 16, 32\), wanted \(B, 3, 32, 32\)"):
        Captioner(CaptionerConfig(**TINY))(torch.zeros(1, 3, 16, 32), torch.ones(1, 2, dtype=torch.long))
