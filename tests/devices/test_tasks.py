"""Every task's step and evaluation on an accelerator, and its loss in mixed precision."""

import math

import pytest
import torch

from regard.runtime import Runtime
from regard.training.loop import take_step
from regard.training.muon import Muon
from regard.training.validation import metrics, validation_loss
from tests.devices.accelerator import DEVICE, OnAccelerator, accelerator
from tests.devices.prepared import CASES, Case, Prepared, prepare

THERE = Runtime(DEVICE)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def prepared(request, tmp_path) -> Prepared:
    case: Case = request.param
    return prepare(case, tmp_path / "run", [request.getfixturevalue(case.data)] if case.data else [])


def test_a_step_waits_once_and_an_evaluation_where_it_may(prepared):
    """Without the optimizers of the package, whose fused kernels know no such device."""
    prepared.model.train()
    with accelerator() as mode:
        prepared.model.to(DEVICE)
        batch = THERE.move(prepared.batch())
        optimizers = [torch.optim.SGD(prepared.model.parameters(), lr=0.01)]
        loss, norm = take_step(prepared.model, prepared.task, optimizers, [batch], 0.01, 1.0, THERE)
        assert mode.used == {("training/loop.py", "take_parallel_step"): 1}
        found = validation_loss(prepared.model, prepared.task, prepared.validation(), THERE)
        metrics(prepared.model, prepared.task, found, prepared.validation(), runtime=THERE)
    assert all(map(math.isfinite, (loss, norm, found)))
    assert all(isinstance(parameter, OnAccelerator) for parameter in prepared.model.parameters())


def test_the_loss_is_that_of_the_host(prepared):
    prepared.model.eval()
    batch = prepared.batch()
    wanted = prepared.task.loss(prepared.model, batch).item()
    with accelerator():
        prepared.model.to(DEVICE)
        found = prepared.task.loss(prepared.model, THERE.move(batch))
        assert found.numbers.item() == pytest.approx(wanted, rel=1e-4)


def test_in_bfloat16_a_loss_is_float32_and_weights_stay_so(prepared):
    prepared.model.eval()
    batch, low = prepared.batch(), Runtime(dtype=torch.bfloat16)
    wanted = prepared.task.loss(prepared.model, batch).item()
    with low.autocast():
        loss = prepared.task.loss(prepared.model, batch)
    loss.backward()
    assert loss.dtype is torch.float32
    assert loss.item() == pytest.approx(wanted, rel=0.02)
    for parameter in prepared.model.parameters():
        assert parameter.dtype is torch.float32
        assert parameter.grad is None or parameter.grad.dtype is torch.float32


def test_muon_stays_there():
    with accelerator({}):
        weight = torch.nn.Parameter(torch.randn(4, 6, device=DEVICE))
        weight.grad = torch.randn(4, 6, device=DEVICE)
        optimizer = Muon([weight], weight_decay=0.1)
        optimizer.step()
        assert isinstance(optimizer.state[weight]["momentum"], OnAccelerator)
