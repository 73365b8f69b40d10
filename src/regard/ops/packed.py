"""Products with packed matrices: weights of 4, 6 or 8 bits in blocks of 32, with a scale for each block.

These are the blocks of GGUF files, multiplied as they are: 4 bits are read where float32 would read 32, and reading the
weights is what a decoding step costs. `pack_gguf` keeps the blocks of a file, `pack` makes blocks from float32. The C
form rounds each block of activations to 8 bits and sums integers, the torch form multiplies by the unpacked weights
with the same rounding.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.dispatch import check
from regard.ops.library import OUT_OF_RANGE, library

BLOCK = 32  # numbers that share a scale
PANEL = 16  # rows side by side in memory
ACTIVATION_LEVELS = 127


class Layout(IntEnum):
    """How a code becomes a number; as in csrc/packed.h."""

    SYMMETRIC = 0  # scale · (code - offset)
    MINIMUM = 1  # scale · code + minimum
    HALVES = 2  # SYMMETRIC, with a scale for each half of a block


@dataclass(frozen=True)
class BlockType:
    """A type of GGUF tensors, and the packed form that holds its numbers."""

    number: int  # in the file
    block: int  # numbers in a block of the file
    block_bytes: int
    bits: int
    layout: Layout


GGUF_TYPES = {
    "Q4_0": BlockType(2, 32, 18, 4, Layout.SYMMETRIC),
    "Q4_1": BlockType(3, 32, 20, 4, Layout.MINIMUM),
    "Q5_0": BlockType(6, 32, 22, 6, Layout.SYMMETRIC),
    "Q5_1": BlockType(7, 32, 24, 6, Layout.MINIMUM),
    "Q8_0": BlockType(8, 32, 34, 8, Layout.SYMMETRIC),
    "Q4_K": BlockType(12, 256, 144, 4, Layout.MINIMUM),
    "Q5_K": BlockType(13, 256, 176, 6, Layout.MINIMUM),
    "Q6_K": BlockType(14, 256, 210, 6, Layout.HALVES),
}
KERNELS = {(found.bits, found.layout) for found in GGUF_TYPES.values()}
FROM_FLOAT = {8: Layout.SYMMETRIC, 4: Layout.MINIMUM}  # bits -> the layout that `pack` makes


@dataclass(frozen=True, eq=False)
class PackedMatrix:
    """A matrix (N, K) of 4, 6 or 8 bits; made by `pack` and `pack_gguf`."""

    panels: Tensor  # uint8, as csrc/packed.h describes
    shape: tuple[int, int]
    bits: int
    layout: Layout

    def __post_init__(self) -> None:
        if (self.bits, self.layout) not in KERNELS:
            raise ValueError(f"{self.bits} bits {self.layout!r}, wanted a pair of GGUF_TYPES")
        size = num_bytes(*self.shape, self.bits, self.layout)
        panels = self.panels
        if (
            panels.dtype is not torch.uint8
            or panels.shape != (size,)
            or not panels.is_cpu
            or not panels.is_contiguous()
        ):
            raise ValueError(f"panels are {panels.dtype} {tuple(panels.shape)}, wanted uint8 ({size},) on the CPU")


def num_bytes(rows: int, columns: int, bits: int, layout: Layout) -> int:
    """The size of a packed matrix."""
    blocks = math.ceil(columns / BLOCK) * math.ceil(rows / PANEL)
    return blocks * PANEL * (BLOCK * bits // 8 + (2 if layout is Layout.SYMMETRIC else 4))


def packed_is_supported() -> bool:
    """The C library is there: packed matrices have no other form."""
    return library() is not None


def pack(weight: Tensor, bits: int) -> PackedMatrix:
    """The nearest packed matrix of 4 or 8 bits."""
    if bits not in FROM_FLOAT:
        raise ValueError(f"bits are {bits}, wanted one of {', '.join(map(str, FROM_FLOAT))}")
    weight = weight.detach().float().contiguous()
    if weight.dim() != 2 or not weight.numel() or not weight.is_cpu:
        raise ValueError(f"weight is {tuple(weight.shape)} on {weight.device}, wanted (N, K), not empty, on the CPU")
    rows, columns = weight.shape
    made = _pack(weight, -1, columns * 4, (rows, columns), bits, FROM_FLOAT[bits])
    if made is None:
        raise ValueError("a weight is not finite, or too large for a scale in float16")
    return made


def pack_gguf(blocks: Tensor, kind: str, columns: int) -> PackedMatrix | None:
    """The matrix of a GGUF tensor: the bytes (N, row bytes) of its rows; None if a scale has no place in float16."""
    found = GGUF_TYPES[kind]
    wanted = columns // found.block * found.block_bytes
    fits = blocks.dim() == 2 and blocks.numel() and blocks.shape[1] == wanted and columns % found.block == 0
    if not fits or blocks.dtype is not torch.uint8 or not blocks.is_cpu or not blocks.is_contiguous():
        got = f"{blocks.dtype} {tuple(blocks.shape)}"
        raise ValueError(f"blocks are {got}, wanted uint8 (N, {wanted}), contiguous, for {columns} columns of {kind}")
    return _pack(blocks, found.number, wanted, (len(blocks), columns), found.bits, found.layout)


def _pack(
    source: Tensor, kind: int, row_bytes: int, shape: tuple[int, int], bits: int, layout: Layout
) -> PackedMatrix | None:
    panels = torch.empty(num_bytes(*shape, bits, layout), dtype=torch.uint8)
    threads = torch.get_num_threads()
    status = _library().pack_matrix(
        source.data_ptr(), kind, row_bytes, panels.data_ptr(), *shape, bits, layout, threads
    )
    return None if status == OUT_OF_RANGE else PackedMatrix(panels, shape, bits, layout)


def unpack_rows(matrix: PackedMatrix, rows: Tensor) -> Tensor:
    """Rows (…,) of the matrix in float32: (…, K)."""
    rows = rows.to(device="cpu", dtype=torch.int64).contiguous()
    out = torch.empty(*rows.shape, matrix.shape[1])
    if rows.numel():
        given = (*matrix.shape, matrix.bits, matrix.layout, rows.data_ptr(), rows.numel(), out.data_ptr())
        check(_library().unpack_rows(matrix.panels.data_ptr(), *given, torch.get_num_threads()))
    return out


def unpack(matrix: PackedMatrix) -> Tensor:
    """The whole matrix (N, K) in float32."""
    return unpack_rows(matrix, torch.arange(matrix.shape[0]))


def linear_packed(hidden: Tensor, matrix: PackedMatrix, bias: Tensor | None = None) -> Tensor:
    """`F.linear(hidden, weight, bias)` with a packed weight, in float32: hidden (…, K)."""
    rows, columns = matrix.shape
    if not hidden.is_cpu or hidden.dim() == 0 or hidden.shape[-1] != columns:
        raise ValueError(f"hidden is {tuple(hidden.shape)} on {hidden.device}, wanted (…, {columns}) on the CPU")
    if bias is not None and (bias.shape != (rows,) or not bias.is_cpu):
        raise ValueError(f"bias is {tuple(bias.shape)} on {bias.device}, wanted ({rows},) on the CPU")
    hidden = hidden.detach().float().contiguous()
    bias = None if bias is None else bias.detach().float().contiguous()
    out = hidden.new_empty(*hidden.shape[:-1], rows)
    if out.numel():
        check(
            _library().linear_packed(
                hidden.data_ptr(),
                matrix.panels.data_ptr(),
                None if bias is None else bias.data_ptr(),
                out.data_ptr(),
                hidden.numel() // columns,
                rows,
                columns,
                matrix.bits,
                matrix.layout,
                torch.get_num_threads(),
            )
        )
    return out


def linear_packed_written_out(hidden: Tensor, matrix: PackedMatrix, bias: Tensor | None = None) -> Tensor:
    """The same in torch: activations rounded block by block, times the unpacked weights."""
    return F.linear(round_activations(hidden), unpack(matrix), bias)


def round_activations(hidden: Tensor) -> Tensor:
    """Hidden states (…, K) with each block of 32 rounded to 8 bits."""
    width = hidden.shape[-1]
    blocks = F.pad(hidden, (0, -width % BLOCK)).unflatten(-1, (-1, BLOCK))
    scales = blocks.abs().amax(-1, keepdim=True) / ACTIVATION_LEVELS
    return ((blocks / scales.clamp(min=1e-32)).round() * scales).flatten(-2)[..., :width]


def _library() -> Any:
    found = library()
    if found is None:
        raise RuntimeError("there are no C kernels")
    return found
