"""Products with a matrix in int8: a quarter of the bytes to read, which is what a decoding step costs.

Weights are rounded to 8 bits with a scale per row of the matrix. Each row of activations is scaled by its own largest
number, so that its result does not depend on the rows beside it. The C form takes activations in up to 16 bits, as good
as exact. Where it is missing, torch's fbgemm does, which wants activations in 7 bits (it adds two products in 16):
there each row goes in twice, rounded, and as what rounding left out, magnified. SmolLM2's activations have a few very
large numbers: 7 bits alone raise its loss by 6 %, either of these by 0.1 %.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.ops.dispatch import check
from regard.ops.library import library

COLUMN_MULTIPLE = 64  # int8 rows are zero-padded to a multiple of this
WEIGHT_LEVELS = 127  # a weight is -127 to 127
FBGEMM_LEVELS = 63  # an activation in 7 bits is -63 to 63
REMAINDER_SCALE = 2 * FBGEMM_LEVELS  # rounding leaves out half a level at most: this makes a full range of it


@dataclass(frozen=True, eq=False)
class Int8Rows:
    """A matrix (N, K) in int8: row n is about scales[n] · rows[n]."""

    rows: Tensor  # (N, K) int8, zero-padded to a multiple of 64 columns
    scales: Tensor  # (N,)
    errors: Tensor  # (N,) the norms of what rounding left out
    norms: Tensor  # (N,) the norms of the rows
    sums: Tensor  # (N,) int32, the sums of the int8 rows
    width: int  # K without the padding

    def __post_init__(self) -> None:
        count = len(self.rows)
        columns = math.ceil(self.width / COLUMN_MULTIPLE) * COLUMN_MULTIPLE
        wanted = [(self.rows, (count, columns), torch.int8), (self.sums, (count,), torch.int32)]
        wanted += [(part, (count,), torch.float32) for part in (self.scales, self.errors, self.norms)]
        for part, shape, dtype in wanted:
            if part.shape != shape or part.dtype is not dtype or not part.is_cpu or not part.is_contiguous():
                raise ValueError(f"{part.dtype} {tuple(part.shape)}, wanted {dtype} {shape}, contiguous on the CPU")

    @property
    def pointers(self) -> list[int]:
        return [part.data_ptr() for part in (self.rows, self.scales, self.errors, self.norms, self.sums)]


def int8_is_supported() -> bool:
    """The C library has kernels for int8."""
    found = library()
    return found is not None and bool(found.int8_is_supported())


def quantize_rows(weight: Tensor) -> Int8Rows:
    """A matrix (N, K) in int8, for the C form."""
    if not int8_is_supported() or weight.dim() != 2 or not weight.numel() or not weight.is_cpu:
        got = f"a weight {tuple(weight.shape)} on {weight.device}"
        raise ValueError(f"{got}; wanted (N, K), not empty, on a CPU with int8 kernels")
    weight = weight.detach().float().contiguous()
    count, width = weight.shape
    columns = math.ceil(width / COLUMN_MULTIPLE) * COLUMN_MULTIPLE
    scales, errors, norms = (torch.empty(count) for _ in range(3))
    rows, sums = torch.empty(count, columns, dtype=torch.int8), torch.empty(count, dtype=torch.int32)
    made = Int8Rows(rows, scales, errors, norms, sums, width)
    _library().quantize_rows(weight.data_ptr(), count, width, columns, *made.pointers, torch.get_num_threads())
    return made


def linear_int8(hidden: Tensor, matrix: Int8Rows, bias: Tensor | None = None) -> Tensor:
    """`F.linear(hidden, weight, bias)` with `quantize_rows(weight)`, in float32: hidden (…, K), any float dtype."""
    rows, columns = matrix.rows.shape
    hidden, bias = padded_columns(hidden.detach().float(), matrix), as_float_bias(bias, rows)
    out = hidden.new_empty(*hidden.shape[:-1], rows)
    if not out.numel():  # there is no address to give to C
        return out
    check(
        _library().linear_int8(
            hidden.data_ptr(),
            matrix.rows.data_ptr(),
            matrix.scales.data_ptr(),
            None if bias is None else bias.data_ptr(),
            out.data_ptr(),
            hidden.numel() // columns,
            rows,
            columns,
            max_activation(columns),
            torch.get_num_threads(),
        )
    )
    return out


def padded_columns(hidden: Tensor, matrix: Int8Rows) -> Tensor:
    """Hidden states (…, K), contiguous, zero-padded to the columns of the int8 matrix."""
    if not hidden.is_cpu or hidden.dim() == 0 or hidden.shape[-1] != matrix.width:
        raise ValueError(f"hidden is {tuple(hidden.shape)} on {hidden.device}, wanted (…, {matrix.width}) on the CPU")
    padding = matrix.rows.shape[1] - matrix.width
    return torch.nn.functional.pad(hidden, (0, padding)).contiguous() if padding else hidden.contiguous()


def as_float_bias(bias: Tensor | None, rows: int) -> Tensor | None:
    if bias is None:
        return None
    if bias.shape != (rows,) or not bias.is_cpu:
        raise ValueError(f"bias is {tuple(bias.shape)} on {bias.device}, wanted ({rows},) on the CPU")
    return bias.float().contiguous()


def max_activation(columns: int) -> int:
    """Largest quantized activation for which the int32 sum of `columns` products cannot overflow."""
    return min(2**15 - 1, (2**31 - 1) // (WEIGHT_LEVELS * max(columns, 1)))


def _library() -> Any:
    found = library()
    if found is None:
        raise RuntimeError("there are no C kernels")
    return found


class CInt8:
    """x Wᵀ + b with W (N, K) in int8, by the C form; no gradient."""

    def __init__(self, weight: Tensor) -> None:
        self._matrix = quantize_rows(weight)

    def __call__(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return linear_int8(hidden, self._matrix, bias)


class FbgemmInt8:
    """The same by torch's fbgemm."""

    def __init__(self, weight: Tensor) -> None:
        if weight.device.type != "cpu" or "fbgemm" not in torch.backends.quantized.supported_engines:
            raise ConfigError("int8 needs a CPU with torch's fbgemm kernels; leave out --precision int8")
        torch.backends.quantized.engine = "fbgemm"
        weight = weight.detach().float()
        scale = weight.abs().amax(1).clamp(min=1e-12) / WEIGHT_LEVELS
        with warnings.catch_warnings():
            # torch plans to move these kernels to another package; the versions we allow still have them.
            warnings.filterwarnings("ignore", message=".*quantized tensor creation functions.*")
            rounded = torch.quantize_per_channel(
                weight, scale.double(), torch.zeros(len(weight), dtype=torch.long), 0, torch.qint8
            )
            self._packed: Any = torch.ops.quantized.linear_prepack(rounded, None)
        # Looked up once: on a small layer the lookup takes longer than the product.
        self._linear: Any = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default

    def __call__(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        rows = hidden.detach().reshape(-1, hidden.shape[-1])
        level = rows.abs().amax(-1, keepdim=True).clamp_(min=1e-12).div_(FBGEMM_LEVELS)
        scaled = rows / level  # (B, K) from -63 to 63
        rounded = scaled.round()
        both = torch.cat([rounded, scaled.sub_(rounded).mul_(REMAINDER_SCALE)])
        found, remainder = self._linear(both, 1.0, FBGEMM_LEVELS + 1, self._packed).chunk(2)
        found = torch.add(found, remainder, alpha=1 / REMAINDER_SCALE)
        bias = as_float_bias(bias, found.shape[-1])
        found = found.mul_(level) if bias is None else torch.addcmul(bias, found, level)
        return found.view(*hidden.shape[:-1], found.shape[-1])


def int8_product(weight: Tensor) -> CInt8 | FbgemmInt8:
    """x Wᵀ + b with the weight in int8, in the best form there is."""
    return CInt8(weight) if weight.is_cpu and int8_is_supported() else FbgemmInt8(weight)
