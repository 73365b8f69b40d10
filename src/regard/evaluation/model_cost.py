"""What a whole model costs for a source of N words and a target of M: the formula beside what was counted and timed.

Multiply-adds by formula are those of the matrices and of attention; counted are those of every matrix product that
torch really did. The state is what decoding carries from step to step: a Transformer's keys and values, 2 · layers ·
batch · (N + M) · width numbers, grow with every word; a recurrent state does not.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regard.config import Facts
from regard.errors import InputError
from regard.evaluation.random_words import random_words
from regard.inspection.capture import watch
from regard.layers.cache import Cache
from regard.layers.recurrent import CELLS
from regard.layers.tap import taps
from regard.models.conv_seq2seq import ConvConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import Transformer, TransformerConfig

BYTES = 4  # of a number in single precision
LARGEST = 8e9  # bytes that a measurement may take


@dataclass(frozen=True)
class Formula:
    """Numbers for one pair of N and M words."""

    multiply_adds: float
    attention_numbers: float  # weights of all layers and heads, where they are written out
    state_numbers: float  # carried from step to step after M words


def of_transformer(config: TransformerConfig, n: int, m: int) -> Formula:
    d, f = config.width, config.feed_forward
    encoders, decoders = config.layers, config.decoder_layers or config.layers
    encoder = n * (4 * d * d + 2 * d * f) + 2 * n * n * d
    decoder = m * (6 * d * d + 2 * d * f) + 2 * n * d * d + 2 * (m * m + n * m) * d
    join = 2 * (n + m) * d * d if config.join == "concatenated" else 0
    return Formula(
        encoders * encoder + decoders * decoder + join + m * d * config.written,
        config.heads * (encoders * n * n + decoders * (m * m + n * m)),
        2 * decoders * (n + m) * d,
    )


def of_rnn(config: RNNConfig, n: int, m: int) -> Formula:
    d, layers, cell = config.width, config.layers, CELLS[config.cell]
    ways, each = (2, d // 2) if config.both_ways else (1, d)
    reading = n * layers * ways * cell.gates * each * (d + each)
    writing = m * layers * cell.gates * d * 2 * d
    bridge, attention, context, kept = 0, 0, 0, 0
    if config.bridge != "last_state":
        context = d
        bridge = layers * cell.parts * d * d + cell.gates * d * d  # the first states, and c into the gates, once
        kept = d + cell.gates * d
    if config.bridge == "attention":
        similarity = m * n * d  # the same for a product of vectors and for the last layer of the MLP
        bridge += (m - 1) * cell.gates * d * d + (n + m) * d * d + similarity + m * n * d
        attention, kept = m * n, 2 * n * d
    readout = m * (d + context) * d + m * d * config.vocabulary
    return Formula(reading + writing + bridge + readout, attention, layers * cell.parts * d + kept)


def of_conv(config: ConvConfig, n: int, m: int) -> Formula:
    d, k = config.width, config.kernel
    encoders, decoders = config.layers, config.decoder_layers or config.layers
    encoder = n * 2 * k * d * d
    decoder = m * (2 * k + 2) * d * d + 2 * m * n * d
    return Formula(
        encoders * encoder + decoders * decoder + m * d * d + m * d * config.vocabulary,
        decoders * m * n,
        decoders * (k - 1) * d + 2 * n * d,
    )


FORMULAS: dict[type[Facts], Callable[[Any, int, int], Formula]] = {
    TransformerConfig: of_transformer,
    RNNConfig: of_rnn,
    ConvConfig: of_conv,
}


@dataclass(frozen=True)
class Row:
    """One cost: what the formula says, and what was counted, held or timed."""

    name: str
    unit: str
    formula: float | None
    measured: float


@torch.inference_mode()
def model_cost(model: Any, *, batch: int, source: int, target: int) -> list[Row]:
    """The costs of a model for a batch of pairs, with `source` and `target` tokens each."""
    formula = FORMULAS[type(model.config)](model.config, source, target)
    _check_room(formula, model.config, batch, target)
    sources = _ids(model, model.config.vocabulary, batch, source)
    targets = _ids(model, model.config.written, batch, target)
    targets[:, 0] = model.config.symbols.begin
    adds = counted(model, sources, targets)
    weights = _weights(model, sources, targets)
    passing = _seconds(lambda: model(sources, targets))
    reading = _seconds(lambda: model.start(sources))
    state = model.start(sources)
    begun = time.perf_counter()
    for tokens in targets.T:
        _, state = model.step(tokens, state)
    writing = time.perf_counter() - begun
    parameters = list(model.parameters())
    return [
        Row("parameters", "", None, sum(parameter.numel() for parameter in parameters)),
        Row("memory of the parameters", "bytes", None, sum(parameter.nbytes for parameter in parameters)),
        Row("multiply-adds of a pass", "", batch * formula.multiply_adds, adds),
        Row("FLOPs a target token", "", 2 * formula.multiply_adds / target, 2 * adds / batch / target),
        Row("attention matrices", "bytes", BYTES * batch * formula.attention_numbers, weights),
        Row("key-value cache, or state", "bytes", BYTES * batch * formula.state_numbers, bytes_of(state)),
        Row("  room taken for it", "bytes", None, sum(storages_of(state).values())),
        Row("a pass over all places", "seconds", None, passing),
        Row("arithmetic of the pass", "GFLOP/s", None, 2 * adds / passing / 1e9),
        Row("reading the source", "seconds", None, reading),
        Row("a step of writing", "seconds", None, writing / target),
        Row("writing", "tokens/s", None, batch * target / writing),
    ]


def _check_room(formula: Formula, config: Any, batch: int, target: int) -> None:
    needed = BYTES * batch * (formula.attention_numbers + formula.state_numbers + target * config.written)
    if needed > LARGEST:
        raise InputError(
            f"attention matrices, cache and logits of this batch would take {needed / 1e9:,.0f} GB, "
            f"measured is up to {LARGEST / 1e9:.0f}; give a smaller batch or shorter lengths"
        )


def _seconds(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def _ids(model: Any, vocabulary: int, batch: int, length: int) -> Tensor:
    return random_words(vocabulary, model.config.symbols, batch * length).view(batch, length)


def counted(model: Any, source: Tensor, target: Tensor) -> float:
    """Multiply-adds of all matrix products of a pass, with attention written out so that its products are seen."""
    counter = FlopCounterMode(display=False)
    attention = _attention_taps(model)
    with counter:
        _watched(model, attention, source, target)
    return counter.get_total_flops() / 2


def _weights(model: Any, source: Tensor, target: Tensor) -> float:
    return _watched(model, _attention_taps(model), source, target)


def _attention_taps(model: Any) -> list[str]:
    return [path for path in taps(model) if path.endswith("weights")]


def _watched(model: Any, attention: list[str], source: Tensor, target: Tensor) -> float:
    """Run with these taps watched; the bytes of what came by."""
    if not attention:
        model(source, target)
        return 0.0
    with watch(model, *attention) as seen:
        model(source, target)
    return float(sum(value.nbytes for values in seen.values() for value in values))


def bytes_of(state: Any) -> int:
    """The numbers a state holds, in bytes; masks and token ids are not counted."""
    return sum(tensor.nbytes for tensor in _numbers(state))


def storages_of(state: Any) -> dict[int, int]:
    """The memory behind them, by its address: a cache makes room in advance, and a view keeps all it was cut from."""
    storages = (tensor.untyped_storage() for tensor in _numbers(state))
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def _numbers(thing: Any) -> Iterator[Tensor]:
    if isinstance(thing, Tensor) and thing.is_floating_point():
        yield thing
    elif isinstance(thing, Cache):
        yield from thing.seen
    elif isinstance(thing, (list, tuple)):
        yield from (number for part in thing for number in _numbers(part))
    elif is_dataclass(thing):
        yield from (number for field in fields(thing) for number in _numbers(getattr(thing, field.name)))


@dataclass(frozen=True)
class Pairing:
    """Attention weights a head and layer for N source and M target words: by formula, and counted as they came by."""

    source: int
    target: int
    formula: int  # N² + M² + N M
    counted: int


def pairings(lengths: tuple[tuple[int, int], ...] = ((16, 16), (64, 16), (16, 64), (128, 128))) -> list[Pairing]:
    """A Transformer of one layer and one head reads N words and writes M: how many weights it computes."""
    model = Transformer(TransformerConfig(vocabulary=16, width=8, heads=1, layers=1, feed_forward=8)).eval()
    found = []
    for n, m in lengths:
        counted_bytes = _weights(model, _ids(model, 16, 1, n), _ids(model, 16, 1, m))
        found.append(Pairing(n, m, n * n + m * m + n * m, int(counted_bytes) // BYTES))
    return found
