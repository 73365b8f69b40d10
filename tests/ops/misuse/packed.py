"""Right uses of packed matrices. Programs are tried in tests/generation/test_engine.py, indices out of range too."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.packed import (
    Layout,
    PackedMatrix,
    linear_packed,
    linear_packed_written_out,
    pack,
    pack_gguf,
    unpack,
    unpack_rows,
)
from tests.ops.forms import numbers
from tests.ops.misuse.judging import Op

ROUNDING = 1 / 127  # of a number, relative to the largest of its block


def plain_matrix(weight: Tensor) -> Tensor:
    if weight.dim() != 2 or weight.is_meta or not weight.numel() or not weight.float().isfinite().all():
        raise ValueError("not (N, K)")
    if weight.float().abs().max() > 60_000:
        raise ValueError("no scale in float16")
    return weight.to_dense().float()


def packed_and_back(weight: Tensor) -> Tensor:
    return unpack(pack(weight, 8))


def product(hidden: Tensor, weight: Tensor, bias: Any) -> Tensor:
    return linear_packed(hidden, pack(weight, 8), bias)


def plain_product(hidden: Tensor, weight: Tensor, bias: Any) -> Tensor:
    """A number that is not finite damages its row."""
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError("no bias of these rows")
    hidden = hidden.to_dense().float()
    hidden = hidden + (hidden * 0).sum(-1, keepdim=True)
    return F.linear(hidden, plain_matrix(weight), None if bias is None else bias.to_dense().float())


def product_of_panels(hidden: Tensor, panels: Tensor) -> Tensor:
    return linear_packed(hidden, PackedMatrix(panels, (9, 70), 8, Layout.SYMMETRIC))


def plain_product_of_panels(hidden: Tensor, panels: Tensor) -> Tensor:
    size = pack(numbers(9, 70), 8).panels.shape
    if panels.dtype is not torch.uint8 or panels.shape != size or panels.is_meta:
        raise ValueError("not the panels of 9 rows")
    hidden = hidden.to_dense().float()
    return linear_packed_written_out(hidden, PackedMatrix(panels.contiguous(), (9, 70), 8, Layout.SYMMETRIC))


def file_rows(blocks: Tensor, columns: int) -> Tensor:
    found = pack_gguf(blocks, "Q8_0", columns)
    if found is None:
        raise ValueError("a scale is not finite: it wanted float32")
    return unpack(found)


def plain_file_rows(blocks: Tensor, columns: int) -> Tensor:
    if blocks.dtype is not torch.uint8 or blocks.is_meta or blocks.dim() != 2 or blocks.shape[1] * 32 != columns * 34:
        raise ValueError("no rows of this width")
    parts = blocks.contiguous().unflatten(1, (-1, 34))
    scales = parts[..., :2].contiguous().view(torch.float16).float()
    if not scales.isfinite().all():
        raise ValueError("a scale is not finite")
    return (scales * parts[..., 2:].contiguous().view(torch.int8)).flatten(1)


def looked_up(rows: Tensor) -> Tensor:
    return unpack_rows(pack(numbers(9, 70), 8), rows)


def plain_looked_up(rows: Tensor) -> Tensor:
    if rows.is_meta or (rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < 9):
        raise IndexError("no such row")
    return unpack(pack(numbers(9, 70), 8))[rows.to_dense().long()]


PACKED = [
    Op(
        "pack",
        lambda weight: unpack(pack(weight, 8)),
        plain_matrix,
        [lambda: {"weight": numbers(9, 70)}],
        tolerance=0.01,
    ),
    Op(
        "linear_packed",
        product,
        plain_product,
        [
            lambda rows=rows: {
                "hidden": numbers(rows, 70),
                "weight": numbers(9, 70, seed=1),
                "bias": numbers(9, seed=2),
            }
            for rows in (1, 5, 21)
        ],
        {"bias": [None]},
        tolerance=4 * ROUNDING,
    ),
    Op(
        "PackedMatrix",
        product_of_panels,
        plain_product_of_panels,
        [lambda: {"panels": pack(numbers(9, 70), 8).panels, "hidden": numbers(5, 70)}],
        tolerance=4 * ROUNDING,
    ),
    Op(
        "pack_gguf",
        file_rows,
        plain_file_rows,
        [lambda: {"blocks": torch.full((9, 68), 3, dtype=torch.uint8), "columns": 64}],
        {"columns": [0, 32, 63, 65, 2**40]},
    ),
    Op("unpack_rows", looked_up, plain_looked_up, [lambda: {"rows": torch.tensor([[3, 0], [8, 3]])}]),
]
