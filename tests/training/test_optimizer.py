"""The schedules' values, and an optimizer whose memory comes back."""

import pytest
import torch
from torch import nn

from regard.training.optimizer import learning_rate, make_optimizer, optimizer_tensors, restore_optimizer


def test_warm_up_is_a_straight_line_to_the_peak():
    rates = [learning_rate(step, schedule="cosine", peak=2.0, warmup=4, total=100) for step in (1, 2, 4)]
    assert rates == [0.5, 1.0, 2.0]


def test_inverse_square_root_is_the_papers_formula():
    """lrate = d^-0.5 · min(step^-0.5, step · warmup^-1.5), with d = 512 and warmup = 4000."""
    peak = 512**-0.5 * 4000**-0.5
    for step in (1, 100, 4000, 4001, 100_000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate(step, schedule="inverse_sqrt", peak=peak, warmup=4000, total=1) == pytest.approx(paper)


@pytest.mark.parametrize(("schedule", "half"), [("cosine", 0.5), ("linear", 0.5), ("constant", 1.0)])
def test_the_way_down(schedule, half):
    def rate(step):
        return learning_rate(step, schedule=schedule, peak=1.0, warmup=10, total=110)

    assert rate(60) == pytest.approx(half)
    assert rate(110) == pytest.approx(1.0 if schedule == "constant" else 0.0, abs=1e-12)
    assert rate(500) == rate(110)


def test_only_matrices_decay():
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    groups = make_optimizer(model, weight_decay=0.1).param_groups
    assert [(len(group["params"]), group["weight_decay"]) for group in groups] == [(1, 0.1), (3, 0.0)]


def test_a_restored_optimizer_takes_the_same_step():
    torch.manual_seed(0)
    model, words = nn.Linear(4, 4), torch.randn(8, 4)
    optimizer = make_optimizer(model, weight_decay=0.1)

    def step(model, optimizer):
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        model(words).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step(model, optimizer)
    twin = nn.Linear(4, 4)
    twin.load_state_dict(model.state_dict())
    other = make_optimizer(twin, weight_decay=0.1)
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, model).items()}
    assert set(saved) == {f"{p}.{s}" for p in ("weight", "bias") for s in ("step", "exp_avg", "exp_avg_sq")}
    restore_optimizer(other, twin, saved)
    step(model, optimizer)
    step(twin, other)
    assert torch.equal(model.weight, twin.weight)
    assert torch.equal(model.bias, twin.bias)
