"""Every model on the meta device, which computes shapes without numbers: a plan for more than this machine holds."""

import pytest
import torch

from regard.models import build
from regard.runtime import Runtime
from tests.contracts.examples import EXAMPLES, named
from tests.devices.drive import inputs, outputs

META = Runtime(torch.device("meta"))


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_forward_and_backward_on_meta(example):
    with torch.device("meta"):
        model = build(example.config)
    model.to("meta")  # formulas that are computed on the CPU
    wanted = outputs(example.model(), inputs(example, Runtime()))
    found = outputs(model, inputs(example, META))
    assert [one.shape for one in found] == [one.shape for one in wanted]
    sum(one.float().sum() for one in found).backward()
    assert all(parameter.grad.is_meta for parameter in model.parameters() if parameter.grad is not None)
    assert any(parameter.grad is not None for parameter in model.parameters())
