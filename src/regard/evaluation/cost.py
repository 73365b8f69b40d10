"""What a layer costs: the formula beside the measurement.

A layer of width d reads n words. By formula: multiply-adds, steps that must wait for one another, the longest path
between two words, numbers kept for the way back. By measurement: the time of a forward pass, and the bytes that
autograd keeps. Both as powers of n, so that "linear" and "quadratic" are numbers one can look at.

    kind            multiply-adds          steps   path              attention matrix
    recurrence      6 n d²  (a GRU)        n       n                 -
    convolution     2 k n d²  (gated)      1       (n - 1) / (k - 1) layers
    self-attention  4 n d² + 2 n² d        1       1                 h n²

Recurrence and self-attention cost the same where 6 n d² = 4 n d² + 2 n² d: at n = d.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.layers.attention import MultiHeadAttention, attend, attend_written_out
from regard.layers.convolution import GatedConvolution
from regard.layers.recurrent import GRU

BYTES = 4  # of a number in single precision
CROSSING = ("recurrence", "self-attention")


@dataclass(frozen=True)
class Size:
    """A layer of width d over n words, with h heads, or windows of k words."""

    length: int
    width: int
    heads: int = 1
    kernel: int = 3
    batch: int = 1


@dataclass(frozen=True)
class Kind:
    """A kind of layer: its formulas, and how to build and run one."""

    name: str
    multiply_adds: Callable[[Size], float]
    sequential_steps: Callable[[Size], float]
    longest_path: Callable[[Size], float]
    attention_numbers: Callable[[Size], float]  # in the matrix of weights, where it is written out
    memory_power: int  # of n, for long n
    build: Callable[[Size], Callable[[], Tensor]]  # a forward pass over random words


def _recurrence(size: Size) -> Callable[[], Tensor]:
    layer, words = GRU(size.width, size.width), _words(size)
    return lambda: layer(words, words.new_zeros(size.batch, 1, size.width))


def _convolution(size: Size) -> Callable[[], Tensor]:
    layer, words = GatedConvolution(size.width, size.kernel), _words(size)
    return lambda: layer(nn.functional.pad(words, (0, 0, size.kernel - 1, 0)))


def _self_attention(size: Size) -> Callable[[], Tensor]:
    layer, words = MultiHeadAttention(size.width, size.heads), _words(size)
    return lambda: layer(words, words)


def _heads(size: Size) -> tuple[Tensor, ...]:
    shape = (size.batch, size.heads, size.length, size.width // size.heads)
    return tuple(torch.randn(shape, requires_grad=True) for _ in range(3))


def _scores_written_out(size: Size) -> Callable[[], Tensor]:
    query, key, value = _heads(size)
    return lambda: attend_written_out(query, key, value).output


def _scores_fast(size: Size) -> Callable[[], Tensor]:
    query, key, value = _heads(size)
    return lambda: attend(query, key, value)


def _words(size: Size) -> Tensor:
    return torch.randn(size.batch, size.length, size.width)


def _nothing(size: Size) -> float:
    return 0.0


def _one(size: Size) -> float:
    return 1.0


def _matrix(size: Size) -> float:
    return size.heads * size.length**2


KINDS = [
    Kind(
        "recurrence",
        lambda s: 6 * s.length * s.width**2,
        lambda s: s.length,
        lambda s: s.length,
        _nothing,
        1,
        _recurrence,
    ),
    Kind(
        "convolution",
        lambda s: 2 * s.kernel * s.length * s.width**2,
        _one,
        lambda s: math.ceil((s.length - 1) / (s.kernel - 1)),
        _nothing,
        1,
        _convolution,
    ),
    Kind(
        "self-attention",
        lambda s: 4 * s.length * s.width**2 + 2 * s.length**2 * s.width,
        _one,
        _one,
        _matrix,
        1,
        _self_attention,
    ),
    Kind("scores, written out", lambda s: 2 * s.length**2 * s.width, _one, _one, _matrix, 2, _scores_written_out),
    Kind("scores, fast kernel", lambda s: 2 * s.length**2 * s.width, _one, _one, _nothing, 1, _scores_fast),
]


@dataclass(frozen=True)
class Measured:
    """One kind at one size."""

    kind: str
    length: int
    multiply_adds: float
    sequential_steps: float
    longest_path: float
    attention_bytes: float
    seconds: float  # of a forward pass, the best of several
    kept_bytes: int  # for the way back


@dataclass(frozen=True)
class Growth:
    """How a kind grows with n: the power by formula beside the one fitted to what was measured."""

    kind: str
    time_formula: float
    time_measured: float
    memory_formula: float
    memory_measured: float


def measure(lengths: Sequence[int], *, width: int, heads: int, kernel: int) -> Iterator[Measured]:
    """Every kind at every length, as they are done."""
    for length in lengths:
        size = Size(length, width, heads, kernel)
        for kind in KINDS:
            run = kind.build(size)
            yield Measured(
                kind.name,
                length,
                kind.multiply_adds(size),
                kind.sequential_steps(size),
                kind.longest_path(size),
                BYTES * kind.attention_numbers(size),
                best_seconds(run),
                kept_bytes(run),
            )


@torch.no_grad()
def best_seconds(run: Callable[[], Tensor], rounds: int = 7) -> float:
    """The shortest of several passes: what else the machine does only ever adds to it."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def kept_bytes(run: Callable[[], Tensor]) -> int:
    """What autograd keeps of a forward pass for the way back, parameters not counted, each storage once."""
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if not (tensor.is_leaf and tensor.requires_grad):
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        kept = run()  # held until all is counted, so that no address is used twice
    del kept
    return sum(storages.values())


def power(lengths: Sequence[float], values: Sequence[float], longest: int = 3) -> float:
    """The power p of y = c nᵖ, by least squares on the logarithms of the longest lengths, where it is at home."""
    x = [math.log(length) for length in lengths[-longest:]]
    y = [math.log(value) for value in values[-longest:]]
    return statistics.linear_regression(x, y).slope


def growth(found: Sequence[Measured]) -> list[Growth]:
    """The fitted powers of every kind that was measured at two lengths at least."""
    rows = []
    for kind in KINDS:
        of_kind = [one for one in found if one.kind == kind.name]
        lengths = [one.length for one in of_kind]
        rows.append(
            Growth(
                kind.name,
                power(lengths, [one.multiply_adds for one in of_kind]),
                power(lengths, [one.seconds for one in of_kind]),
                kind.memory_power,
                power(lengths, [one.kept_bytes for one in of_kind]),
            )
        )
    return rows


@dataclass(frozen=True)
class Crossing:
    """From which length on self-attention costs more than recurrence."""

    batch: int
    formula: float
    measured: float | None  # in time; None: not up to `longest`
    longest: int


def find_crossing(*, width: int, heads: int, batch: int = 32, longest: int = 4096) -> Crossing:
    """Time both at n = d, 2 d, … until self-attention is the slower one; in between by the logarithms.

    By formula they meet at n = d. In time later: the steps of a recurrence are small and wait for one another.
    """
    recurrence, attention = (next(kind for kind in KINDS if kind.name == name) for name in CROSSING)
    before: tuple[int, float] | None = None
    length = width
    while length <= longest:
        size = Size(length, width, heads, batch=batch)
        apart = math.log(best_seconds(attention.build(size), rounds=3) / best_seconds(recurrence.build(size), rounds=3))
        if apart > 0:
            share = 1.0 if before is None else -before[1] / (apart - before[1])
            start = length if before is None else before[0]
            return Crossing(batch, float(width), start * (length / start) ** share, longest)
        before = length, apart
        length *= 2
    return Crossing(batch, float(width), None, longest)
