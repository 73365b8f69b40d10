"""Right uses of the int8 products."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from regard.ops.quantized import (
    CInt8,
    FbgemmInt8,
    Int8Rows,
    as_float_bias,
    int8_product,
    linear_int8,
    padded_columns,
    quantize_rows,
)
from tests.ops.forms import numbers
from tests.ops.misuse.judging import Op
from tests.ops.misuse.products import product_use

ROUNDING = 1 / 127  # of a weight, relative to the largest of its row


def whole_rows(matrix: Int8Rows) -> Tensor:
    """The matrix that the int8 rows stand for."""
    return matrix.rows[:, : matrix.width] * matrix.scales[:, None]


def quantized_and_back(weight: Tensor) -> Tensor:
    return whole_rows(quantize_rows(weight))


def plain_rows(weight: Tensor) -> Tensor:
    """A number that is not finite damages its row."""
    if weight.dim() != 2 or weight.is_meta:
        raise ValueError("not (N, K)")
    weight = weight.float()
    return weight + (weight * 0).sum(1, keepdim=True)


def product_of(matrix_class: Any) -> Any:
    return lambda hidden, weight, bias: matrix_class(weight)(hidden, bias)


def product_with_rows(hidden: Tensor, weight: Tensor, bias: Any) -> Tensor:
    return linear_int8(hidden, quantize_rows(weight), bias)


def plain_product(hidden: Tensor, weight: Tensor, bias: Any) -> Tensor:
    """In float32, whatever the dtypes; a bias for each row, as a layer has it."""
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError("no bias of these rows")
    return F.linear(hidden.float(), plain_rows(weight), None if bias is None else bias.float())


def product_with_parts(hidden: Tensor, **parts: Any) -> Tensor:
    return linear_int8(hidden, Int8Rows(**parts))


def plain_product_with_parts(hidden: Tensor, rows: Tensor, scales: Tensor, width: int, **others: Tensor) -> Tensor:
    return F.linear(hidden.float(), rows[:, :width] * scales[:, None])


def parts_use() -> dict[str, Any]:
    matrix = quantize_rows(numbers(9, 70, seed=1))
    names = ("rows", "scales", "errors", "norms", "sums", "width")
    return {"hidden": numbers(5, 70)} | {name: getattr(matrix, name) for name in names}


def plain_padded_columns(hidden: Tensor, width: int) -> Tensor:
    if hidden.shape[-1] != width:
        raise ValueError("another width")
    return F.pad(hidden, (0, -width % 64))


def padded(hidden: Tensor, width: int) -> Tensor:
    return padded_columns(hidden, quantize_rows(numbers(3, width)))


def plain_bias(bias: Any, rows: int) -> Any:
    if bias is not None and bias.shape != (rows,):
        raise ValueError("another length")
    return None if bias is None else bias.float()


SIZES = ((7, 24), (1, 1), (33, 17), (50, 130), (3, 64))
INT8 = [
    Op(
        "quantize_rows",
        quantized_and_back,
        plain_rows,
        [lambda size=size: {"weight": numbers(*size)} for size in SIZES],
        tolerance=ROUNDING,
    ),
    *(
        Op(
            f"{name} of {rows} rows",
            call,
            plain_product,
            [product_use(rows, *size) for size in SIZES],
            {"bias": [None]},
            tolerance=4 * ROUNDING,
        )
        for name, call, rows in (
            ("linear_int8", product_with_rows, 1),
            ("linear_int8", product_with_rows, 21),
            ("CInt8", product_of(CInt8), 5),
            ("FbgemmInt8", product_of(FbgemmInt8), 5),
            ("int8_product", product_of(int8_product), 5),
        )
    ),
    Op(
        "Int8Rows",
        product_with_parts,
        plain_product_with_parts,
        [parts_use],
        {"width": [0, -1, 64, 69, 71, 128, 129, 10**9]},
        tolerance=1e-3,
    ),
    Op("padded_columns", padded, plain_padded_columns, [lambda: {"hidden": numbers(3, 70), "width": 70}]),
    Op("as_float_bias", as_float_bias, plain_bias, [lambda: {"bias": numbers(7), "rows": 7}], {"rows": [0, 6, 8]}),
]
