"""Right uses of the elementwise ops: activation, residual norm, dropout."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.activation import TORCH_ACTIVATIONS, activate
from regard.ops.dropout import dropout, dropout_with_seeds
from regard.ops.norm import add_layer_norm
from tests.ops.forms import numbers
from tests.ops.misuse.gradients import with_gradients
from tests.ops.misuse.judging import Op


def plain_activation(hidden: Tensor, name: str) -> Tensor:
    return TORCH_ACTIVATIONS[name](hidden)


def plain_add_layer_norm(hidden: Tensor, update: Tensor, weight: Any, bias: Any, eps: float) -> Tensor:
    total = hidden + update
    return F.layer_norm(total, total.shape[-1:], weight, bias, eps)


def kept_by(form: Any) -> Any:
    """Dropout draws: what it dropped is put back, so that the rest can be compared."""

    def kept(hidden: Tensor, p: float, **further: Any) -> Tensor:
        found = form(hidden, p, **further)
        return found if p == 1 else torch.where(found == 0, hidden / (1 - p), found)

    return kept


def plain_dropout(hidden: Tensor, p: float) -> Tensor:
    return kept_by(F.dropout)(hidden, p)


def plain_dropout_with_seeds(hidden: Tensor, p: float, seeds: list[int]) -> Tensor:
    if not 0 <= p < 1 or len(seeds) != 2 or not all(0 <= seed < 2**32 for seed in seeds):
        raise ValueError("no such draw")
    return hidden / (1 - p)


def norm_use(rows: int, width: int) -> Any:
    return lambda: {
        "hidden": numbers(rows, width),
        "update": numbers(rows, width, seed=1),
        "weight": numbers(width, seed=2),
        "bias": numbers(width, seed=3),
        "eps": 1e-5,
    }


ELEMENTWISE = [
    *(
        Op(
            f"activate {name}{suffix}",
            wrap(activate),
            wrap(plain_activation),
            [lambda size=size, name=name: {"hidden": numbers(3, size) * 4, "name": name} for size in (5, 1, 16, 33)],
            {"name": ["tanh", ""]},
        )
        for name in TORCH_ACTIVATIONS
        for suffix, wrap in (("", lambda form: form), (" backward", with_gradients))
    ),
    Op(
        "add_layer_norm",
        add_layer_norm,
        plain_add_layer_norm,
        [norm_use(*size) for size in ((3, 24), (1, 1), (5, 7), (2, 16), (4, 33))],
        {"eps": [0.0, -1.0, torch.nan, 1e30], "weight": [None], "bias": [None]},
        tolerance=1e-4,
    ),
    Op(
        "dropout",
        kept_by(dropout),
        plain_dropout,
        [lambda size=size: {"hidden": numbers(3, size), "p": 0.5} for size in (5, 1, 16, 33)],
        {"p": [0.0, 1.0, -0.1, 1.1, 1e-12, 1 - 1e-12]},
    ),
    Op(
        "dropout_with_seeds",
        kept_by(dropout_with_seeds),
        plain_dropout_with_seeds,
        [lambda size=size: {"hidden": numbers(3, size), "p": 0.5, "seeds": [1, 2**32 - 1]} for size in (5, 33)],
        {"p": [0.0, 1.0, -0.1, 1.1, torch.nan], "seeds": [[], [1], [1, 2, 3], [-1, 2], [2**32, 1]]},
    ),
]
