"""The schedules' values, and an optimizer whose memory comes back."""

import pytest
import torch
from torch import nn

from regard.training.muon import Muon, orthogonalize
from regard.training.optimizer import make_optimizers, optimizer_tensors, restore_optimizers
from regard.training.schedule import learning_rate


def test_warmup_is_linear_to_the_peak():
    rates = [learning_rate(step, schedule="cosine", peak=2.0, warmup=4, total=100) for step in (1, 2, 4)]
    assert rates == [0.5, 1.0, 2.0]


def test_inverse_square_root_is_the_papers_formula():
    """lrate = d^-0.5 · min(step^-0.5, step · warmup^-1.5), with d = 512 and warmup = 4000."""
    peak = 512**-0.5 * 4000**-0.5
    for step in (1, 100, 4000, 4001, 100_000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate(step, schedule="inverse_sqrt", peak=peak, warmup=4000, total=1) == pytest.approx(paper)


@pytest.mark.parametrize(("schedule", "half"), [("cosine", 0.5), ("linear", 0.5), ("constant", 1.0)])
def test_decay_after_the_warmup(schedule, half):
    def rate(step):
        return learning_rate(step, schedule=schedule, peak=1.0, warmup=10, total=110)

    assert rate(60) == pytest.approx(half)
    assert rate(110) == pytest.approx(1.0 if schedule == "constant" else 0.0, abs=1e-12)
    assert rate(500) == rate(110)


def test_warmup_stable_decay():
    """To the peak in 10 steps, there until the last fifth of 100, then straight down to zero."""

    def rate(step, decay=0.2):
        return learning_rate(step, schedule="wsd", peak=2.0, warmup=10, total=100, decay_share=decay)

    assert [rate(step) for step in (1, 5, 10)] == pytest.approx([0.2, 1.0, 2.0])
    assert [rate(step) for step in (11, 50, 80)] == [2.0, 2.0, 2.0]
    assert [rate(step) for step in (81, 90, 95, 99, 100)] == pytest.approx([1.9, 1.0, 0.5, 0.1, 0.0])
    assert rate(150) == 0
    assert [rate(step, decay=1.0) for step in (20, 60)] == pytest.approx([1.6, 0.8])


def test_only_matrices_have_weight_decay():
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    (adam,) = make_optimizers(model, kind="adamw", weight_decay=0.1)
    assert [(len(group["params"]), group["weight_decay"]) for group in adam.param_groups] == [(1, 0.1), (3, 0.0)]


def test_muon_takes_the_matrices_of_linear_layers_and_adamw_the_rest():
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4))
    adam, muon = make_optimizers(model, kind="muon", weight_decay=0.1)
    assert [p.shape for group in muon.param_groups for p in group["params"]] == [(4, 4)]
    assert sum(len(group["params"]) for group in adam.param_groups) == 4


@pytest.mark.parametrize("shape", [(6, 6), (4, 32)])
def test_orthogonalizing_keeps_the_singular_vectors_and_sets_the_values_to_one(shape):
    matrix = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = orthogonalize(matrix, iterations=6)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    assert (torch.linalg.svdvals(found) - 1).abs().max() < 0.35
    # u · found · v is diagonal: the directions are the matrix's own
    turned = left.transpose(1, 2) @ found @ right.transpose(1, 2)
    assert (turned - torch.diag_embed(torch.diagonal(turned, dim1=1, dim2=2))).abs().max() < 1e-6


def test_muon_steps_tall_matrices_like_wide_ones():
    gradient = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    lying, standing = nn.Parameter(torch.zeros(3, 8)), nn.Parameter(torch.zeros(8, 3))
    lying.grad, standing.grad = gradient.clone(), gradient.T.clone()
    muon = Muon([lying, standing])
    muon.param_groups[0]["lr"] = 0.1
    muon.step()
    torch.testing.assert_close(lying.detach(), standing.detach().T)
    assert lying.detach().square().mean().sqrt().item() == pytest.approx(0.1 * 0.2, rel=0.2)  # AdamW's usual size


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_restored_optimizers_take_the_same_step(kind):
    model, words = nn.Linear(4, 4), torch.randn(8, 4)
    optimizers = make_optimizers(model, kind=kind, weight_decay=0.1)

    def step(model, optimizers):
        model(words).square().sum().backward()
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = 0.1
            optimizer.step()
        model.zero_grad()

    step(model, optimizers)
    twin = nn.Linear(4, 4)
    twin.load_state_dict(model.state_dict())
    others = make_optimizers(twin, kind=kind, weight_decay=0.1)
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizers, model).items()}
    assert {name.split(".")[0] for name in saved} == {"weight", "bias"}
    restore_optimizers(others, twin, saved)
    step(model, optimizers)
    step(twin, others)
    assert torch.equal(model.weight, twin.weight)
    assert torch.equal(model.bias, twin.bias)
