"""What a layer costs: the formula beside the measurement.

A layer of width d reads n words. By formula: multiply-adds, steps that must wait for one another, the longest path
between two words, the attention matrix where it is written out, numbers kept for the way back. By measurement: the time
of a forward pass, and the bytes that autograd keeps. Both as powers of n, so that "linear" and "quadratic" are numbers
one can look at.

    kind            multiply-adds          steps   path                         attention matrix
    recurrence      6 n d²  (a GRU)        n       n                            -
    convolution     2 k n d²  (gated)      1       (n - 1) / (k - 1) layers     -
    self-attention  4 n d² + 2 n² d        1       1                            h n²

Recurrence and self-attention cost the same where 6 n d² = 4 n d² + 2 n² d: at n = d.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.layers.attention import MultiHeadAttention, attend, attend_written_out
from regard.layers.convolution import GatedConvolution
from regard.layers.recurrent import GRU

BYTES = 4  # of a number in single precision
LARGEST = 2e9  # bytes of a matrix of weights that is still written out
ROUNDS = 4  # over all lengths
CROSSING = ("recurrence", "self-attention")


@dataclass(frozen=True)
class Size:
    """A layer of width d over n words, with h heads, or windows of k words."""

    length: int
    width: int
    heads: int = 1
    kernel: int = 3
    batch: int = 1


class Pass(NamedTuple):
    """A forward pass over random words, and the tensors that are there before it."""

    run: Callable[[], Tensor]
    given: tuple[Tensor, ...]


class Kind(NamedTuple):
    """A kind of layer: its formulas for one row of words, and how to build and run one."""

    name: str
    multiply_adds: Callable[[Size], float]
    sequential_steps: Callable[[Size], float]
    longest_path: Callable[[Size], float]
    attention_numbers: Callable[[Size], float]  # in the matrix of weights, if it is written out
    kept_numbers: Callable[[Size], float]  # for the way back
    build: Callable[[Size], Pass]


def _recurrence(size: Size) -> Pass:
    layer, hidden = GRU(size.width, size.width), _words(size)
    return Pass(lambda: layer(hidden, hidden.new_zeros(size.batch, 1, size.width)), tuple(layer.parameters()))


def _convolution(size: Size) -> Pass:
    layer, hidden = GatedConvolution(size.width, size.kernel), _words(size)
    wider = nn.functional.pad(hidden, (0, 0, size.kernel - 1, 0))
    return Pass(lambda: layer(wider), tuple(layer.parameters()))


def _self_attention(size: Size) -> Pass:
    layer, hidden = MultiHeadAttention(size.width, size.heads), _words(size)
    return Pass(lambda: layer(hidden, hidden), tuple(layer.parameters()))


def _scores_written_out(size: Size) -> Pass:
    query, key, value = heads = _heads(size)
    return Pass(lambda: attend_written_out(query, key, value).output, heads)


def _scores_fast(size: Size) -> Pass:
    query, key, value = heads = _heads(size)
    return Pass(lambda: attend(query, key, value), heads)


def _heads(size: Size) -> tuple[Tensor, ...]:
    shape = (size.batch, size.heads, size.length, size.width // size.heads)
    return tuple(torch.randn(shape, requires_grad=True) for _ in range(3))


def _words(size: Size) -> Tensor:
    return torch.randn(size.batch, size.length, size.width)


KINDS = [
    Kind(
        "recurrence",
        multiply_adds=lambda s: 6 * s.length * s.width**2,
        sequential_steps=lambda s: s.length,
        longest_path=lambda s: s.length,
        attention_numbers=lambda s: 0,
        kept_numbers=lambda s: 6 * s.length * s.width + s.width,  # words, states and the first, four parts of a step
        build=_recurrence,
    ),
    Kind(
        "convolution",
        multiply_adds=lambda s: 2 * s.kernel * s.length * s.width**2,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: math.ceil((s.length - 1) / (s.kernel - 1)),
        attention_numbers=lambda s: 0,
        kept_numbers=lambda s: (s.kernel + 2) * s.length * s.width,  # windows, and what the gate gets
        build=_convolution,
    ),
    Kind(
        "self-attention",
        multiply_adds=lambda s: 4 * s.length * s.width**2 + 2 * s.length**2 * s.width,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: 1,
        attention_numbers=lambda s: s.heads * s.length**2,
        kept_numbers=lambda s: 5 * s.length * s.width + s.heads * s.length,  # by the fast kernel
        build=_self_attention,
    ),
    Kind(
        "scores, written out",
        multiply_adds=lambda s: 2 * s.length**2 * s.width,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: 1,
        attention_numbers=lambda s: s.heads * s.length**2,
        kept_numbers=lambda s: s.heads * s.length**2,
        build=_scores_written_out,
    ),
    Kind(
        "scores, fast kernel",
        multiply_adds=lambda s: 2 * s.length**2 * s.width,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: 1,
        attention_numbers=lambda s: 0,
        kept_numbers=lambda s: s.length * s.width + s.heads * s.length,  # the outputs, and each row's total
        build=_scores_fast,
    ),
]


@dataclass(frozen=True)
class Measured:
    """One kind at one size; what is not said to be measured is the formula's."""

    kind: str
    length: int
    multiply_adds: float
    sequential_steps: float
    longest_path: float
    attention_bytes: float  # if written out
    kept_bytes_formula: float
    seconds: float  # of a forward pass, the best of several
    kept_bytes: int  # measured


@dataclass(frozen=True)
class Growth:
    """How a kind grows with n: the power of the formula beside that of what was measured, at the same lengths."""

    kind: str
    time_formula: float
    time_measured: float
    memory_formula: float
    memory_measured: float


def measure(
    lengths: Sequence[int], *, width: int, heads: int, kernel: int, note: Callable[[str], None] = lambda line: None
) -> list[Measured]:
    """Every kind at every length; a matrix of weights beyond LARGEST is not written out.

    In several rounds over all lengths, of which the best time counts: a slow moment of the machine bends no curve.
    """
    sizes = [Size(length, width, heads, kernel) for length in lengths]
    places = [(kind, size) for size in sizes for kind in KINDS if _fits(kind, size)]
    seconds = dict.fromkeys(((kind.name, size) for kind, size in places), math.inf)
    for number in range(1, ROUNDS + 1):
        note(f"round {number} of {ROUNDS}")
        for kind, size in places:
            best = best_seconds(kind.build(size).run, rounds=3)
            seconds[kind.name, size] = min(seconds[kind.name, size], best)
    found = []
    for kind, size in places:
        one = kind.build(size)
        found.append(
            Measured(
                kind.name,
                size.length,
                kind.multiply_adds(size),
                kind.sequential_steps(size),
                kind.longest_path(size),
                BYTES * kind.attention_numbers(size),
                BYTES * kind.kept_numbers(size),
                seconds[kind.name, size],
                kept_bytes(one.run, one.given),
            )
        )
    return found


def _fits(kind: Kind, size: Size) -> bool:
    return kind.build is not _scores_written_out or BYTES * kind.attention_numbers(size) <= LARGEST


@torch.no_grad()
def best_seconds(run: Callable[[], Tensor], rounds: int) -> float:
    """The shortest of several passes: what else the machine does only ever adds to it."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def kept_bytes(run: Callable[[], Tensor], given: Iterable[Tensor]) -> int:
    """What autograd keeps of a forward pass for the way back, each storage once; what was `given` is not counted."""
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        kept = run()  # held until all is counted, so that no address is used twice
    for tensor in given:
        storages.pop(tensor.untyped_storage().data_ptr(), None)
    del kept
    return sum(storages.values())


def power(lengths: Sequence[float], values: Sequence[float], longest: int = 3) -> float:
    """The power p of y = c nᵖ, by least squares on the logarithms of the longest lengths, where it is at home."""
    x = [math.log(length) for length in lengths[-longest:]]
    y = [math.log(value) for value in values[-longest:]]
    return statistics.linear_regression(x, y).slope


def growth(found: Sequence[Measured]) -> list[Growth]:
    """The powers of every kind; it must have been measured at two lengths at least."""
    rows = []
    for kind in KINDS:
        of_kind = [one for one in found if one.kind == kind.name]
        lengths = [one.length for one in of_kind]
        rows.append(
            Growth(
                kind.name,
                power(lengths, [one.multiply_adds for one in of_kind]),
                power(lengths, [one.seconds for one in of_kind]),
                power(lengths, [one.kept_bytes_formula for one in of_kind]),
                power(lengths, [one.kept_bytes for one in of_kind]),
            )
        )
    return rows


@dataclass(frozen=True)
class Crossing:
    """From which length on self-attention costs more than recurrence."""

    batch: int
    shortest: int  # lengths that were timed
    longest: int
    formula: float
    measured: float | None  # in time; None: on one side all the way, see `slower`
    slower: str  # which of the two takes longer at the longest length


def find_crossing(*, width: int, heads: int, longest: int, batch: int = 32) -> Crossing:
    """Time both from n = d / 8 on, doubling, until self-attention is the slower one; in between by the logarithms.

    By formula they meet at n = d. In time later: the steps of a recurrence are small and wait for one another.
    """
    recurrence, attention = (next(kind for kind in KINDS if kind.name == name) for name in CROSSING)
    shortest = length = max(2, width // 8)
    before: tuple[int, float] | None = None
    while length <= longest:
        size = Size(length, width, heads, batch=batch)
        seconds = [best_seconds(kind.build(size).run, rounds=3) for kind in (attention, recurrence)]
        apart = math.log(seconds[0] / seconds[1])
        if apart > 0:
            found = None
            if before is not None:
                found = before[0] * (length / before[0]) ** (-before[1] / (apart - before[1]))
            return Crossing(batch, shortest, length, float(width), found, "self-attention")
        before = length, apart
        length *= 2
    return Crossing(batch, shortest, length // 2, float(width), None, "recurrence")
