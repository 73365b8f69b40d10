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

from regard.errors import InputError
from regard.evaluation.formulas import FORMULAS, Formula
from regard.evaluation.random_words import random_words
from regard.inspection.capture import watch
from regard.layers.cache import Cache
from regard.layers.tap import taps
from regard.models.symbols import LanguageConfig
from regard.models.transformer import Transformer, TransformerConfig

BYTES = 4  # of a number in single precision
LARGEST = 8e9  # bytes that a measurement may take


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
    if not _continues(model):
        targets[:, 0] = model.config.symbols.begin
    adds = counted(model, sources, targets)
    weights = _weights(model, sources, targets)
    passing = _seconds(lambda: _pass(model, sources, targets))
    reading = _seconds(lambda: _start(model, sources, targets))
    state = _start(model, sources, targets)
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


def _continues(model: Any) -> bool:
    """A language model: its source, the prompt, and its target are one text."""
    return isinstance(model.config, LanguageConfig)


def _pass(model: Any, sources: Tensor, targets: Tensor) -> Tensor:
    return model(torch.cat([sources, targets], dim=1)) if _continues(model) else model(sources, targets)


def _start(model: Any, sources: Tensor, targets: Tensor) -> Any:
    """After reading; the first target is what is stepped first."""
    return model.start(torch.cat([sources, targets[:, :1]], dim=1).tolist() if _continues(model) else sources)


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
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learning:  # a module may give out a view of one, and the counter would look for its history
        parameter.requires_grad_(False)
    with counter:
        _watched(model, attention, source, target)
    for parameter in learning:
        parameter.requires_grad_(True)
    return counter.get_total_flops() / 2


def _weights(model: Any, source: Tensor, target: Tensor) -> float:
    return _watched(model, _attention_taps(model), source, target)


def _attention_taps(model: Any) -> list[str]:
    return [path for path in taps(model) if path.endswith("weights")]


def _watched(model: Any, attention: list[str], source: Tensor, target: Tensor) -> float:
    """Run with these taps watched; the bytes of what came by."""
    if not attention:
        _pass(model, source, target)
        return 0.0
    with watch(model, *attention) as seen:
        _pass(model, source, target)
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
