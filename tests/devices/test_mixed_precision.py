"""Training in bfloat16 reaches the loss of float32, on the smallest example of every kind of model.

Within 2 % of the loss that both begin with: a model of a few hundred weights can end near zero, where a ratio is noise.
"""

import pytest
import torch
import torch.nn.functional as F

from regard.runtime import Runtime
from regard.training.loop import make_scaler, take_step
from regard.training.optimizer import make_optimizers
from tests.contracts.examples import EXAMPLES, Example
from tests.devices.drive import inputs, outputs

STEPS = 8


class Fitting:
    """Every second number of each output is to be positive, the others negative: what any model can be fitted to."""

    def __init__(self, example: Example) -> None:
        self.given = inputs(example, Runtime())

    def loss(self, model, batch):
        found = [one.float() for one in outputs(model, self.given)]
        signs = [(torch.arange(one.numel()) % 2).float().view_as(one) for one in found]
        return sum(map(F.binary_cross_entropy_with_logits, found, signs))


class OneBatch:
    tokens = 1


def trained_loss(example: Example, dtype: torch.dtype) -> float:
    model, runtime = example.model(seed=1), Runtime(dtype=dtype)
    optimizers, scaler = make_optimizers(model, kind="adamw", weight_decay=0.0), make_scaler(runtime)
    task = Fitting(example)
    for _ in range(STEPS):
        take_step(model, task, optimizers, [OneBatch()], 1e-3, 1.0, runtime, scaler)
    with torch.no_grad():
        return task.loss(model, OneBatch()).item()


def size(example: Example) -> int:
    return sum(parameter.numel() for parameter in example.model().parameters())


@pytest.mark.parametrize("kind", sorted({example.kind for example in EXAMPLES}))
def test_bfloat16_trains_to_the_loss_of_float32(kind):
    example = min(
        (one for one in EXAMPLES if one.kind == kind), key=lambda one: sum(p.numel() for p in one.model().parameters())
    )
    start = Fitting(example).loss(example.model(seed=1), OneBatch()).item()
    wanted, found = trained_loss(example, torch.float32), trained_loss(example, torch.bfloat16)
    assert wanted < 0.99 * start
    assert found == pytest.approx(wanted, abs=0.02 * start)
