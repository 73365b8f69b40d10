import pytest
import torch
from torch import nn

from tests.contracts.overfitting import overfit


@pytest.mark.parametrize(
    ("passes", "known", "checks"),
    [
        ([False, True, True, True, True, False], True, 5),  # stops there
        ([True, False] * 6, False, 12),  # right by chance at every other step
        ([False, True, True, True] * 3, False, 12),
        ([False] * 8 + [True] * 4, True, 12),  # with the last step
        ([False] * 9 + [True] * 3, False, 12),
    ],
)
def test_a_batch_is_known_when_some_checks_in_a_row_pass(passes, known, checks):
    model, left = nn.Linear(2, 1), list(passes)

    def measure():
        return model(torch.ones(1, 2)).square().sum(), left.pop(0)

    assert overfit(model, measure, learning_rate=0.1, steps=len(passes) - 1)[1] is known
    assert len(passes) - len(left) == checks
