"""What a layer costs: the formula beside the measurement.

A layer of width d reads n tokens. By formula: multiply-adds, steps that must run one after the other, the longest path
between two tokens, the attention matrix when it is written out, and the numbers kept for the backward pass. By
measurement: the time of a forward pass, and the bytes that autograd keeps. Both are fitted as powers of n, so that
"linear" and "quadratic" are numbers.

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
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.inspection.capture import capture
from regard.inspection.curves import Curve, Panel, save_curves
from regard.layers import cost
from regard.layers.attention import MultiHeadAttention, attend, attend_written_out
from regard.layers.convolution import GatedConvolution
from regard.layers.recurrent import GRU
from regard.models.transformer import Transformer, TransformerConfig

NUMBER_BYTES = 4  # float32
MAX_MATRIX_BYTES = 2e9  # a larger attention matrix is not written out
ROUNDS = 4  # over all lengths
SHORTEST = 32  # tokens
LAYERS = ("recurrence", "convolution", "self-attention")
SCORES = ("scores, written out", "scores, fast kernel")


@dataclass(frozen=True)
class Size:
    """A layer of width d over n tokens, with h heads, or windows of k tokens."""

    length: int
    width: int
    heads: int = 1
    kernel: int = 3
    batch: int = 1


class Pass(NamedTuple):
    """A forward pass over random vectors, and the tensors that exist before it."""

    run: Callable[[], Tensor]
    given: tuple[Tensor, ...]


class Kind(NamedTuple):
    """A kind of layer: its formulas for one row of tokens, and how to build and run one."""

    name: str
    multiply_adds: Callable[[Size], float]
    sequential_steps: Callable[[Size], float]
    longest_path: Callable[[Size], float]
    attention_weights: Callable[[Size], float]  # of the attention matrix, if it is written out
    kept_numbers: Callable[[Size], float]  # for the backward pass
    build: Callable[[Size], Pass]


def _recurrence(size: Size) -> Pass:
    layer, hidden = GRU(size.width, size.width), _random_hidden(size)
    return Pass(lambda: layer(hidden, hidden.new_zeros(size.batch, 1, size.width)), tuple(layer.parameters()))


def _convolution(size: Size) -> Pass:
    layer, hidden = GatedConvolution(size.width, size.kernel), _random_hidden(size)
    padded = nn.functional.pad(hidden, (0, 0, size.kernel - 1, 0))
    return Pass(lambda: layer(padded), tuple(layer.parameters()))


def _self_attention(size: Size) -> Pass:
    layer, hidden = MultiHeadAttention(size.width, size.heads), _random_hidden(size)
    return Pass(lambda: layer(hidden, hidden), tuple(layer.parameters()))


def _scores_written_out(size: Size) -> Pass:
    query, key, value = heads = _random_heads(size)
    return Pass(lambda: attend_written_out(query, key, value).output, heads)


def _scores_fast(size: Size) -> Pass:
    query, key, value = heads = _random_heads(size)
    return Pass(lambda: attend(query, key, value), heads)


def _random_heads(size: Size) -> tuple[Tensor, ...]:
    shape = (size.batch, size.heads, size.length, size.width // size.heads)
    return tuple(torch.randn(shape, requires_grad=True) for _ in range(3))


def _random_hidden(size: Size) -> Tensor:
    return torch.randn(size.batch, size.length, size.width)


KINDS = [
    Kind(
        "recurrence",
        multiply_adds=lambda s: 6 * s.length * s.width**2,
        sequential_steps=lambda s: s.length,
        longest_path=lambda s: s.length,
        attention_weights=lambda s: 0,
        kept_numbers=lambda s: 6 * s.length * s.width + s.width,  # inputs, states and the first, four parts of a step
        build=_recurrence,
    ),
    Kind(
        "convolution",
        multiply_adds=lambda s: 2 * s.kernel * s.length * s.width**2,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: math.ceil((s.length - 1) / (s.kernel - 1)),
        attention_weights=lambda s: 0,
        kept_numbers=lambda s: (s.kernel + 2) * s.length * s.width,  # windows, and the input of the gate
        build=_convolution,
    ),
    Kind(
        "self-attention",
        multiply_adds=lambda s: cost.self_attention(s.length, s.width),
        sequential_steps=lambda s: 1,
        longest_path=lambda s: 1,
        attention_weights=lambda s: s.heads * s.length**2,
        kept_numbers=lambda s: 5 * s.length * s.width + s.heads * s.length,  # by the fast kernel
        build=_self_attention,
    ),
    Kind(
        "scores, written out",
        multiply_adds=lambda s: 2 * s.length**2 * s.width,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: 1,
        attention_weights=lambda s: s.heads * s.length**2,
        kept_numbers=lambda s: s.heads * s.length**2,
        build=_scores_written_out,
    ),
    Kind(
        "scores, fast kernel",
        multiply_adds=lambda s: 2 * s.length**2 * s.width,
        sequential_steps=lambda s: 1,
        longest_path=lambda s: 1,
        attention_weights=lambda s: 0,
        kept_numbers=lambda s: s.length * s.width + s.heads * s.length,  # the outputs, and the logsumexp of each row
        build=_scores_fast,
    ),
]


@dataclass(frozen=True)
class Measured:
    """One kind at one size; all but `seconds` and `kept_bytes` are formulas."""

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
    """How a kind grows with n: the power in the formula beside the measured one, at the same lengths."""

    kind: str
    time_formula: float
    time_measured: float
    memory_formula: float
    memory_measured: float


@dataclass(frozen=True)
class Crossing:
    """The length from which self-attention costs more than recurrence."""

    batch: int
    shortest: int  # lengths that were timed
    longest: int
    formula: float
    measured: float | None  # in time; None: `slower` is slower at all lengths
    slower: str  # at the longest length


@dataclass(frozen=True)
class Pairing:
    """Attention weights of a head and layer for N source and M target tokens: by formula, and counted."""

    source: int
    target: int
    formula: int  # N² + M² + N M
    counted: int


@dataclass(frozen=True)
class LayerCosts:
    """A layer of each kind over the length n."""

    width: int
    heads: int
    kernel: int
    measured: list[Measured]
    growth: list[Growth]
    crossing: Crossing
    pairings: list[Pairing]


def cost_of_layers(
    *, width: int, heads: int, kernel: int, longest: int, output: Path | None, note: Callable[[str], None]
) -> LayerCosts:
    """Measure every kind at n = 32, 64, … up to the longest; with an output, draw the curves there."""
    lengths = [SHORTEST]
    while 2 * lengths[-1] < longest:
        lengths.append(2 * lengths[-1])
    lengths.append(longest)
    found = measure(lengths, width=width, heads=heads, kernel=kernel, note=note)
    note("where recurrence and self-attention cross")
    crossing = find_crossing(width=width, heads=heads, longest=longest)
    costs = LayerCosts(width, heads, kernel, found, growth(found), crossing, pairings())
    if output is not None:
        save_curves(_panels(costs), output)
        note(f"wrote {output}")
    return costs


def measure(
    lengths: Sequence[int], *, width: int, heads: int, kernel: int, note: Callable[[str], None] = lambda line: None
) -> list[Measured]:
    """Every kind at every length; an attention matrix above MAX_MATRIX_BYTES is not written out.

    In several rounds over all lengths, of which the best time counts: a slow moment of the machine bends no curve.
    """
    sizes = [Size(length, width, heads, kernel) for length in lengths]
    points = [(kind, size) for size in sizes for kind in KINDS if _fits(kind, size)]
    seconds = dict.fromkeys(((kind.name, size) for kind, size in points), math.inf)
    for number in range(1, ROUNDS + 1):
        note(f"round {number} of {ROUNDS}")
        for kind, size in points:
            best = best_seconds(kind.build(size).run, rounds=3)
            seconds[kind.name, size] = min(seconds[kind.name, size], best)
    return [_measured(kind, size, seconds[kind.name, size]) for kind, size in points]


def _measured(kind: Kind, size: Size, seconds: float) -> Measured:
    one = kind.build(size)
    return Measured(
        kind.name,
        size.length,
        kind.multiply_adds(size),
        kind.sequential_steps(size),
        kind.longest_path(size),
        NUMBER_BYTES * kind.attention_weights(size),
        NUMBER_BYTES * kind.kept_numbers(size),
        seconds,
        kept_bytes(one.run, one.given),
    )


def _fits(kind: Kind, size: Size) -> bool:
    return kind.build is not _scores_written_out or NUMBER_BYTES * kind.attention_weights(size) <= MAX_MATRIX_BYTES


@torch.no_grad()
def best_seconds(run: Callable[[], Tensor], rounds: int) -> float:
    """The shortest of several passes: other work of the machine only adds to it."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def kept_bytes(run: Callable[[], Tensor], given: Iterable[Tensor]) -> int:
    """What autograd keeps of a forward pass for the backward pass, each storage once, without the `given` tensors."""
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
    """The power p of y = c nᵖ, by least squares on the logarithms of the longest lengths, where it dominates."""
    x = [math.log(length) for length in lengths[-longest:]]
    y = [math.log(value) for value in values[-longest:]]
    return statistics.linear_regression(x, y).slope


def growth(found: Sequence[Measured]) -> list[Growth]:
    """The powers of every kind, measured at two lengths or more."""
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


def find_crossing(*, width: int, heads: int, longest: int, batch: int = 32) -> Crossing:
    """Time both from n = d / 8, doubling n until self-attention is the slower one; interpolate on the logarithms.

    By formula they meet at n = d. In time later: the steps of a recurrence are small and run one after the other.
    """
    recurrence, attention = (next(kind for kind in KINDS if kind.name == name) for name in (LAYERS[0], LAYERS[2]))
    shortest = length = max(2, width // 8)
    before: tuple[int, float] | None = None
    while length <= longest:
        size = Size(length, width, heads, batch=batch)
        seconds = [best_seconds(kind.build(size).run, rounds=3) for kind in (attention, recurrence)]
        ratio = math.log(seconds[0] / seconds[1])
        if ratio > 0:
            found = None
            if before is not None:
                found = before[0] * (length / before[0]) ** (-before[1] / (ratio - before[1]))
            return Crossing(batch, shortest, length, float(width), found, "self-attention")
        before = length, ratio
        length *= 2
    return Crossing(batch, shortest, length // 2, float(width), None, "recurrence")


@torch.no_grad()
def pairings(lengths: tuple[tuple[int, int], ...] = ((16, 16), (64, 16), (16, 64), (128, 128))) -> list[Pairing]:
    """How many attention weights a Transformer of one layer and one head computes for N source and M target tokens."""
    model = Transformer(TransformerConfig(vocab_size=16, width=8, heads=1, layers=1, feed_forward=8)).eval()
    found = []
    for n, m in lengths:
        with capture(model, "*.weights") as watched:
            model(torch.full((1, n), 3), torch.full((1, m), 3))
        weights = sum(value.numel() for values in watched.values() for value in values)
        found.append(Pairing(n, m, n * n + m * m + n * m, weights))
    return found


def _panels(costs: LayerCosts) -> list[Panel]:
    def panel(title: str, unit: str, kinds: tuple[str, ...], value: Callable[[Measured], float]) -> Panel:
        curves = {
            kind: Curve(
                [one.length for one in costs.measured if one.kind == kind],
                [value(one) for one in costs.measured if one.kind == kind],
            )
            for kind in kinds
        }
        marks = {"n = d": costs.crossing.formula} if title.startswith("Multiply-adds") else {}
        return Panel(title, "n", unit, curves, logarithmic=True, marks=marks)

    return [
        panel("Multiply-adds by formula", "", LAYERS, lambda one: one.multiply_adds),
        panel("Time of a layer", "seconds", LAYERS, lambda one: one.seconds),
        panel("Memory kept for the backward pass", "bytes", LAYERS, lambda one: one.kept_bytes),
        panel("Time of attention alone", "seconds", SCORES, lambda one: one.seconds),
        panel("Memory of attention alone", "bytes", SCORES, lambda one: one.kept_bytes),
    ]
