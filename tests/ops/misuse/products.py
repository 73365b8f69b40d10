"""Right uses of the matrix products, in float32 and in int8."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.activation import TORCH_ACTIVATIONS
from regard.ops.linear import fused_linears, linear, logits
from tests.ops.forms import numbers
from tests.ops.misuse.judging import Op


def product_use(rows: int, outputs: int, inner: int, biased: bool = True) -> Any:
    return lambda: {
        "hidden": numbers(rows, inner),
        "weight": numbers(outputs, inner, seed=1),
        "bias": numbers(outputs, seed=2) if biased else None,
    }


def plain_linear(hidden: Tensor, weight: Tensor, bias: Any) -> Tensor:
    """Torch takes no sparse weight here."""
    return F.linear(hidden.to_dense(), weight.to_dense(), bias)


def fused(form: Any) -> Any:
    def apply(hidden: Tensor, first: Tensor, second: Tensor, bias: Any, activation: str | None) -> Tensor:
        return form(hidden, [first, second], [bias, None], activation)

    return apply


def fused_or_apart(hidden: Tensor, weights: list[Tensor], biases: list[Any], activation: str | None) -> Tensor:
    """As a layer calls it: None means one by one."""
    found = fused_linears(hidden, weights, biases, activation)
    return one_by_one(hidden, weights, biases, activation, linear) if found is None else found


def one_by_one(
    hidden: Tensor, weights: list[Tensor], biases: list[Any], activation: str | None, form: Any = plain_linear
) -> Tensor:
    found = torch.cat([form(hidden, *each) for each in zip(weights, biases, strict=True)], -1)
    return found if activation is None else TORCH_ACTIVATIONS[activation](found)


def fused_use(rows: int, outputs: int, inner: int, activation: str | None) -> Any:
    return lambda: {
        "hidden": numbers(rows, inner),
        "first": numbers(outputs, inner, seed=1),
        "second": numbers(outputs, inner, seed=2),
        "bias": numbers(outputs, seed=3),
        "activation": activation,
    }


PRODUCTS = [
    *(
        Op(
            f"{form.__name__}{suffix}",
            form,
            plain_linear,
            [product_use(rows, *size) for size in ((7, 24), (1, 1), (33, 17), (70, 130))],
            {"bias": [None]},
        )
        for form, suffix, rows in (
            (linear, " of a row", 1),
            (linear, " of few rows", 5),
            (linear, "", 13),
            (logits, "", 13),
        )
    ),
    Op("linear of a large matrix", linear, plain_linear, [product_use(1, 2048, 130), product_use(9, 1030, 260)]),
    Op(
        "fused_linears",
        fused(fused_or_apart),
        fused(one_by_one),
        [fused_use(13, 7, 24, None), fused_use(8, 1, 1, "gelu"), fused_use(31, 33, 17, "swish")],
        {"activation": [*TORCH_ACTIVATIONS, "tanh"]},
    ),
]
