"""Pictures to grids: the numbers of a convolution and of patches, and that a picture is alone in its batch."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from regard.layers.vision.image_encoder import (
    Convolution,
    ConvolutionEncoder,
    PatchEncoder,
    ResidualBlock,
    channels_of,
    patches,
)
from regard.training.optimizer import make_optimizers


def encoders() -> list[nn.Module]:
    torch.manual_seed(0)
    return [
        ConvolutionEncoder(image_size=32, cell_size=8, width=16, blocks=2),
        PatchEncoder(image_size=32, cell_size=8, width=16, heads=2, blocks=2, feed_forward=24, dropout=0.0),
    ]


def test_patches_are_the_cells_in_reading_order():
    picture = torch.arange(3 * 4 * 6.0).view(1, 3, 4, 6)
    cells = patches(picture, 2)
    assert cells.shape == (1, 6, 12)
    for number in range(6):
        top, left = 2 * (number // 3), 2 * (number % 3)
        assert torch.equal(cells[0, number], picture[0, :, top : top + 2, left : left + 2].flatten())


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (4, 2), (2, 2)])
def test_a_convolution_is_torchs_with_its_weight_as_a_matrix(kernel, stride):
    ours = Convolution(5, 7, kernel, stride=stride)
    torchs = nn.Conv2d(5, 7, kernel, stride=stride, padding=(kernel - 1) // 2, bias=False)
    with torch.no_grad():
        torchs.weight.copy_(ours.weight.view_as(torchs.weight))
    features = torch.randn(2, 5, 8, 8)
    assert_close(ours(features), torchs(features))


def test_a_convolution_is_the_product_of_a_window_and_the_matrix():
    convolution = Convolution(2, 3, 3)
    features = torch.randn(1, 2, 5, 5)
    window = F.pad(features, (1, 1, 1, 1))[0, :, 2:5, 1:4].flatten()  # around row 2, column 1
    assert_close(convolution(features)[0, :, 2, 1], convolution.weight @ window)


def test_muon_takes_the_convolutions():
    encoder = encoders()[0]
    _, muon = make_optimizers(encoder, kind="muon", weight_decay=0.0)
    taken = {id(matrix) for group in muon.param_groups for matrix in group["params"]}
    assert taken == {id(module.weight) for module in encoder.modules() if isinstance(module, Convolution)}


def test_a_block_that_adds_nothing_hands_its_places_on():
    block = ResidualBlock(8, 8)
    nn.init.zeros_(block.second.weight)
    features = torch.randn(2, 8, 4, 4)
    assert torch.equal(block(features), features)


def test_halvings_double_the_channels():
    assert channels_of(8, 128) == [32, 64, 128]
    assert channels_of(2, 10) == [10]
    assert channels_of(16, 64) == [8, 16, 32, 64]


@pytest.mark.parametrize("which", [0, 1])
def test_a_grid_has_a_vector_a_cell_and_knows_its_place(which):
    encoder = encoders()[which]
    assert encoder(torch.randn(3, 3, 32, 32)).shape == (3, 16, 16)
    bare = torch.zeros(1, 3, 32, 32)
    inner = encoder(bare)[0].view(4, 4, 16)[1:3, 1:3].flatten(0, 1)  # no border near them, all alike but for the place
    assert (inner[0] - inner[1:]).abs().amax(1).min() > 0.1


def test_a_cell_stands_for_its_own_pixels():
    """What a cell depends on lies around the middle of the cell, not beside it."""
    encoder = ConvolutionEncoder(image_size=128, cell_size=8, width=16, blocks=1)
    for parameter in encoder.parameters():
        nn.init.constant_(parameter, 1.0)
    for module in encoder.modules():
        if isinstance(module, nn.GroupNorm):
            module.forward = lambda features: features  # a norm sees all of the picture
    encoder.norm = nn.Identity()
    pixels = torch.ones(1, 3, 128, 128, requires_grad=True)
    encoder(pixels)[0, 8 * 16 + 8].sum().backward()  # row 8, column 8: its middle is (68, 68)
    for side in (1, 2):
        weight = pixels.grad[0, 0].sum(2 - side)
        middle = (weight * (torch.arange(128) + 0.5)).sum() / weight.sum()
        assert middle.item() == pytest.approx(68, abs=1e-2)


@pytest.mark.parametrize("which", [0, 1])
def test_neighbors_in_a_batch_change_nothing_while_training(which):
    encoder = encoders()[which].train()
    pictures = torch.randn(4, 3, 32, 32) * torch.tensor([1.0, 5.0, 0.1, 2.0]).view(4, 1, 1, 1)
    together = encoder(pictures)
    for row in range(4):
        assert_close(encoder(pictures[row : row + 1])[0], together[row], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("cell", "blocks"), [(4, 1), (8, 1), (8, 2), (16, 1)])
def test_the_receptive_field_of_a_cell_is_centered_on_the_cell(cell, blocks):
    """Computed: with weights of 1, and neither norms nor activations, a cell is a sum of pixels, its gradient."""
    side, at = 20 * cell, (9, 10)  # far from the edges, where padding cuts windows off
    encoder = ConvolutionEncoder(image_size=side, cell_size=cell, width=2 * cell, blocks=blocks).double()
    for name, module in list(encoder.named_modules()):
        if isinstance(module, nn.GroupNorm):
            encoder.set_submodule(name, nn.Identity())
        elif isinstance(module, Convolution):
            nn.init.ones_(module.weight)
    pixels = torch.ones(1, 3, side, side, dtype=torch.float64, requires_grad=True)
    features = encoder.stem(pixels)
    for block in encoder.blocks:
        features = block(features)
    (gradient,) = torch.autograd.grad(features[0, 0, at[0], at[1]], pixels)
    seen, places = gradient[0].sum(0), torch.arange(side, dtype=torch.float64) + 0.5
    assert seen[0].sum() == seen[-1].sum() == 0
    center = [(seen.sum(1 - axis) @ places / seen.sum()).item() for axis in (0, 1)]
    assert center == pytest.approx([(place + 0.5) * cell for place in at])
