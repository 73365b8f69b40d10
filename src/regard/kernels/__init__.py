"""Kernels in C, most of them for a decoding step: what torch does in several passes, or reads too slowly.

Each function here gives what its one-line form in torch gives, up to rounding; a test holds them equal. They take
float32 tensors of the CPU and know of no gradient. `here()` says whether they can be had on this machine at all,
`takes` and `fits` whether for these tensors: callers ask, and go the other way where the answer is no.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.compiled import NOT_WANTED, library, why_not

__all__ = [
    "NOT_WANTED",
    "RoundedRows",
    "activate",
    "activation_gradient",
    "attend",
    "attend_blocks",
    "cross_entropy",
    "dropout",
    "fits",
    "here",
    "int8_here",
    "left_out",
    "likeliest",
    "linear",
    "linear_int8",
    "linears",
    "log_totals",
    "norm_of_sum",
    "rounded",
    "takes",
    "top",
    "why_not",
]

DEEPEST = 64  # int8 rows are filled up with zeros to a multiple of this
WEIGHT = 127  # levels of a weight each way
ACTIVATIONS = {"gelu": 0, "gelu_tanh": 1, "swish": 2}  # as activations.h has them
RELU, NO_ACTIVATION = 3, 4  # what else may follow a product
PLAIN = (Tensor, torch.nn.Parameter)  # others may have no numbers in memory
_wanted = True


def here() -> bool:
    """There is a compiled library."""
    return library() is not None


def int8_here() -> bool:
    """It has kernels for int8 too."""
    found = library()
    return found is not None and bool(found.int8_is_here())


@contextmanager
def left_out() -> Iterator[None]:
    """Do what follows in torch's own operations alone, for one who counts or compares them."""
    global _wanted
    before, _wanted = _wanted, False
    try:
        yield
    finally:
        _wanted = before


def takes(*tensors: Tensor) -> bool:
    """The tensors are such as the kernels take, and nobody traces what is done."""
    if not _wanted or torch.compiler.is_compiling() or torch.jit.is_tracing() or not here():
        return False
    return all(type(tensor) in PLAIN and tensor.is_cpu and tensor.dtype is torch.float32 for tensor in tensors)


def fits(*tensors: Tensor) -> bool:
    """The same, and nobody asks for a gradient."""
    return not torch.is_grad_enabled() and takes(*tensors)


def linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """`F.linear(hidden, weight, bias)`, and an activation of it: one that `activate` knows, or relu."""
    return linears(hidden, [weight], [bias], activation)


def linears(
    hidden: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None], activation: str | None = None
) -> Tensor:
    """`F.linear(hidden, torch.cat(weights), torch.cat(biases))` of matrices of one shape, which stay where they are."""
    rows, inner = weights[0].shape
    assert activation in (None, "relu", *ACTIVATIONS), f"activation {activation}"
    assert hidden.shape[-1] == inner, f"words of {hidden.shape[-1]} numbers, a matrix of {inner}"
    assert len({weight.shape for weight in weights}) == 1, "matrices of different shapes"
    hidden, weights = hidden.contiguous(), [weight.contiguous() for weight in weights]
    biases = [_bias(bias, rows) for bias in biases]
    parts = len(weights)
    out = hidden.new_empty(*hidden.shape[:-1], parts * rows)
    several = ctypes.c_void_p * parts
    _check(
        _library().linear(
            hidden.data_ptr(),
            several(*[weight.data_ptr() for weight in weights]),
            several(*[None if bias is None else bias.data_ptr() for bias in biases]),
            out.data_ptr(),
            hidden.numel() // inner,
            parts,
            rows,
            inner,
            NO_ACTIVATION if activation is None else ACTIVATIONS.get(activation, RELU),
            torch.get_num_threads(),
        )
    )
    return out


class RoundedRows(NamedTuple):
    """A matrix (N, K) in int8: row n is about scales[n] · rows[n]."""

    rows: Tensor  # (N, K) int8, with zeros up to a multiple of 64 columns
    scales: Tensor  # (N,)
    errors: Tensor  # (N,) the lengths of what rounding left out
    sizes: Tensor  # (N,) the lengths of the rows
    totals: Tensor  # (N,) int32, the sums of the rounded rows


def rounded(weight: Tensor) -> RoundedRows:
    """A matrix (N, K) in int8."""
    weight = weight.detach().float().contiguous()
    count, inner = weight.shape
    wide = math.ceil(inner / DEEPEST) * DEEPEST
    kinds = torch.float32, torch.float32, torch.float32, torch.int32
    found = RoundedRows(torch.empty(count, wide, dtype=torch.int8), *(torch.empty(count, dtype=kind) for kind in kinds))
    pointers = [part.data_ptr() for part in found]
    _library().round_rows(weight.data_ptr(), count, inner, wide, *pointers, torch.get_num_threads())
    return found


def likeliest(hidden: Tensor, weight: Tensor, near: RoundedRows, bias: Tensor | None = None) -> Tensor:
    """`F.linear(hidden, weight, bias).argmax(-1)` of words (B, D), where `near` is `rounded(weight)`.

    A bias of -inf: this row is not asked for. -1: no row gives a finite number.
    """
    assert hidden.shape == (len(hidden), weight.shape[1]), f"words {tuple(hidden.shape)}, a table {tuple(weight.shape)}"
    assert len(near.rows) == len(weight), f"{len(near.rows)} rounded rows of {len(weight)}"
    assert hidden.dtype is weight.dtype is torch.float32, f"words in {hidden.dtype}, a table in {weight.dtype}"
    hidden, weight, bias = hidden.contiguous(), weight.contiguous(), _bias(bias, len(weight))
    filled = _filled(hidden, near.rows)
    found = torch.empty(len(hidden), dtype=torch.long)
    rows, inner = near.rows.shape
    _check(
        _library().likeliest(
            hidden.data_ptr(),
            filled.data_ptr(),
            weight.data_ptr(),
            None if bias is None else bias.data_ptr(),
            *[part.data_ptr() for part in near],
            len(hidden),
            rows,
            hidden.shape[1],
            inner,
            _most(inner),
            found.data_ptr(),
            torch.get_num_threads(),
        )
    )
    return found


def linear_int8(hidden: Tensor, matrix: RoundedRows, bias: Tensor | None = None) -> Tensor:
    """`F.linear` with a matrix that `rounded` made."""
    rows, inner = matrix.rows.shape
    hidden, bias = _filled(hidden.float(), matrix.rows), _bias(bias, rows)
    out = hidden.new_empty(*hidden.shape[:-1], rows)
    _check(
        _library().linear_int8(
            hidden.data_ptr(),
            matrix.rows.data_ptr(),
            matrix.scales.data_ptr(),
            None if bias is None else bias.data_ptr(),
            out.data_ptr(),
            hidden.numel() // inner,
            rows,
            inner,
            _most(inner),
            torch.get_num_threads(),
        )
    )
    return out


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, origin: Tensor | None = None
) -> Tensor:
    """`F.scaled_dot_product_attention` for few queries (B, H, T, K) and a mask (B or 1, 1, 1, S).

    The numbers of a head stand side by side. Place s of text b stands in row origin[b, s] of keys and values, int32, or
    without it in row b. The result (B, H, T, K) lies in memory as (B, T, H, K).
    """
    rows, heads, queries, width = query.shape
    shared, keys = key.shape[1:3]
    if mask is not None:
        mask = mask.reshape(len(mask), keys).contiguous()
    if origin is not None:
        origin = origin.contiguous()
    out = query.new_empty(rows, queries, heads, width)
    _check(
        _library().attend(
            query.data_ptr(),
            key.data_ptr(),
            value.data_ptr(),
            None if mask is None else mask.data_ptr(),
            None if origin is None else origin.data_ptr(),
            out.data_ptr(),
            rows,
            heads,
            heads // shared,
            queries,
            keys,
            width,
            *query.stride()[:3],
            *key.stride()[:3],
            *value.stride()[:3],
            keys if mask is not None and len(mask) > 1 else 0,
            scale,
            torch.get_num_threads(),
        )
    )
    return out.transpose(1, 2)


def attend_blocks(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, longest: int, scale: float) -> Tensor:
    """`F.scaled_dot_product_attention` of texts that stand behind each other, each alone: (1, H, T, K) in and out.

    Text n has the places bounds[n] to bounds[n + 1], at most `longest`. The numbers of a head stand side by side, a
    multiple of 16 of them. The result lies in memory as (1, T, H, K).
    """
    assert query.shape == key.shape == value.shape, "queries, keys and values of different shapes"
    assert len(query) == 1, f"{len(query)} rows, wanted one"
    assert all(part.stride(-1) == 1 for part in (query, key, value)), "the numbers of a head stand apart"
    _, heads, places, width = query.shape
    assert int(cu_seqlens[-1]) == places, f"texts of {int(cu_seqlens[-1])} places, queries of {places}"
    out = query.new_empty(1, places, heads, width)
    _check(
        _library().attend_blocks(
            query.data_ptr(),
            key.data_ptr(),
            value.data_ptr(),
            out.data_ptr(),
            cu_seqlens.data_ptr(),
            len(cu_seqlens) - 1,
            longest,
            heads,
            width,
            *[part.stride(dimension) for part in (query, key, value) for dimension in (2, 1)],
            scale,
            torch.get_num_threads(),
        )
    )
    return out.transpose(1, 2)


def activate(hidden: Tensor, name: str) -> Tensor:
    """`F.gelu(hidden)`, with approximate="tanh" as gelu_tanh, or `F.silu(hidden)` as swish."""
    hidden = hidden.contiguous()
    out = torch.empty_like(hidden)
    which, threads = ACTIVATIONS[name], torch.get_num_threads()
    _library().activate(hidden.data_ptr(), out.data_ptr(), hidden.numel(), which, threads)
    return out


def activation_gradient(hidden: Tensor, outer: Tensor, name: str) -> Tensor:
    """The gradient by the words of what has the gradient `outer` by `activate(hidden, name)`."""
    hidden, outer = hidden.contiguous(), outer.contiguous()
    out = torch.empty_like(hidden)
    which, threads = ACTIVATIONS[name], torch.get_num_threads()
    _library().activation_gradient(hidden.data_ptr(), outer.data_ptr(), out.data_ptr(), hidden.numel(), which, threads)
    return out


def norm_of_sum(hidden: Tensor, update: Tensor, gain: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """`F.layer_norm(hidden + update, gain.shape, gain, bias, epsilon)`."""
    hidden, update = hidden.contiguous(), update.contiguous()
    assert hidden.shape == update.shape, f"words {tuple(hidden.shape)}, an update {tuple(update.shape)}"
    assert gain.shape == bias.shape == hidden.shape[-1:], f"a gain {tuple(gain.shape)} for {tuple(hidden.shape)}"
    out = torch.empty_like(hidden)
    pointers = [part.data_ptr() for part in (hidden, update, gain.contiguous(), bias.contiguous(), out)]
    width = len(gain)
    _library().norm_of_sum(*pointers, hidden.numel() // width, width, epsilon, torch.get_num_threads())
    return out


def log_totals(logits: Tensor) -> Tensor:
    """`logits.logsumexp(-1)` of (B, V)."""
    totals = logits.new_empty(len(logits))
    _library().log_totals(
        logits.data_ptr(), *logits.shape, logits.stride(0), totals.data_ptr(), torch.get_num_threads()
    )
    return totals


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """`F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)` of (B, V).

    The logits become the gradient by them, in place. A target below 0 is no lesson.
    """
    losses, targets = logits.new_empty(len(logits)), targets.long().contiguous()
    _library().cross_entropy(
        logits.data_ptr(), *logits.shape, targets.data_ptr(), smoothing, losses.data_ptr(), torch.get_num_threads()
    )
    return losses


def dropout(hidden: Tensor, share: float, chance: tuple[int, int]) -> Tensor:
    """`F.dropout(hidden, share)`; what is dropped is a function of the places and of `chance`, two 32-bit numbers."""
    hidden = hidden.contiguous()
    out = torch.empty_like(hidden)
    dropped, scale = round(share * 2**32), 1 / (1 - share)
    _library().dropout(
        hidden.data_ptr(), out.data_ptr(), hidden.numel(), *chance, dropped, scale, torch.get_num_threads()
    )
    return out


def top(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`logits.topk(count)` of (B, V); of equal ones the first."""
    assert count <= logits.shape[1], f"the {count} best of {logits.shape[1]}"
    best = logits.new_empty(len(logits), count)
    places = best.new_empty(best.shape, dtype=torch.long)
    _library().top(
        logits.data_ptr(),
        *logits.shape,
        logits.stride(0),
        count,
        best.data_ptr(),
        places.data_ptr(),
        torch.get_num_threads(),
    )
    return best, places


def _filled(hidden: Tensor, weight: Tensor) -> Tensor:
    """The words with zeros behind them, as many numbers as a matrix in int8 has."""
    missing = weight.shape[1] - hidden.shape[-1]
    assert 0 <= missing < DEEPEST, f"words of {hidden.shape[-1]} numbers, a matrix of {weight.shape[1]}"
    return torch.nn.functional.pad(hidden, (0, missing)) if missing else hidden.contiguous()


def _most(inner: int) -> int:
    """The largest whole number of a word of which so many products make no sum that overflows."""
    return min(2**15 - 1, (2**31 - 1) // (WEIGHT * inner))


def _bias(bias: Tensor | None, rows: int) -> Tensor | None:
    if bias is None:
        return None
    assert bias.shape == (rows,), f"a bias of {tuple(bias.shape)}, wanted ({rows},)"
    return bias.float().contiguous()


def _library() -> Any:
    return library()


def _check(failed: int) -> None:
    if failed:
        raise MemoryError("there is not enough memory for a kernel's working space")
