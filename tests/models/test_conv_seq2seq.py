"""What a stack of windows can see."""

import pytest
import torch

from regard.models.conv_seq2seq import ConvConfig, ConvTranslator


@pytest.mark.parametrize(("layers", "kernel"), [(1, 3), (2, 3), (3, 3), (2, 5), (2, 4)])
def test_a_place_sees_its_window_and_one_more_on_each_layer(layers, kernel):
    """(k - 1) · layers + 1 words reach the top: two words far apart meet only high up."""
    torch.manual_seed(0)
    model = ConvTranslator(ConvConfig(vocab_size=20, width=8, layers=layers, kernel=kernel, dropout=0.0)).eval()
    hidden = torch.randn(1, 41, 8, requires_grad=True)
    top = hidden
    for block in model.encoder:
        top = block(top, torch.ones(1, 41, 1))
    (gradient,) = torch.autograd.grad(top[0, 20].sum(), hidden)
    seen = gradient[0].ne(0).any(-1).nonzero().flatten()
    assert int(seen.max() - seen.min()) + 1 == (kernel - 1) * layers + 1 == len(seen)


def test_a_step_keeps_only_what_the_next_window_reaches():
    model = ConvTranslator(ConvConfig(vocab_size=20, width=8, layers=2, kernel=3)).eval()
    state = model.start(torch.full((1, 4), 5))
    for _ in range(6):
        _, state = model.step(state.first, state)
    assert [before.shape for before in state.past] == [(1, 2, 8), (1, 2, 8)]
