"""What a whole model costs for a source of N words and a target of M: the formula beside what was counted and timed.

Multiply-adds by formula are those of the matrices and of attention; counted are those of every matrix product that
torch really did. The state is what decoding carries from step to step: a Transformer's keys and values, 2 · layers ·
batch · (N + M) · width numbers, grow with every word; a recurrent state does not.
A reader has none: what it costs is a pass.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regard import kernels
from regard.errors import InputError
from regard.experiments.random_inputs import random_words
from regard.inspection.capture import watch
from regard.layers.cache import KVCache
from regard.layers.tap import taps
from regard.models.bert import BertConfig
from regard.models.captioner import CaptionerConfig
from regard.models.special_ids import CausalLMConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vilbert import BOX, ViLBERTConfig
from regard.training.formulas import FORMULAS, Formula

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
    """The costs of a model for a batch of pairs, with `source` and `target` tokens each; a picture has no `source`."""
    formula = FORMULAS[type(model.config)](model.config, source, target)
    _check_room(formula, batch, target * model.config.output_vocab_size)
    sources = _sources(model, batch, source)
    targets = _ids(model, model.config.output_vocab_size, batch, target)
    if not _continues(model):
        targets[:, 0] = model.config.special_ids.bos_id
    passing = _Passed.over(model, sources, targets)
    reading = _seconds(lambda: _start(model, sources, targets))
    state = _start(model, sources, targets)
    begun = time.perf_counter()
    for tokens in targets.T:
        _, state = model.step(tokens, state)
    writing = time.perf_counter() - begun
    return [
        *_sizes(model),
        Row("multiply-adds of a pass", "", batch * formula.multiply_adds, passing.adds),
        Row("FLOPs a target token", "", 2 * formula.multiply_adds / target, 2 * passing.adds / batch / target),
        Row("attention matrices", "bytes", BYTES * batch * formula.attention_numbers, passing.weights),
        Row("key-value cache, or state", "bytes", BYTES * batch * formula.state_numbers, bytes_of(state)),
        Row("  room taken for it", "bytes", None, sum(storages_of(state).values())),
        *passing.times,
        Row("reading the source", "seconds", None, reading),
        Row("a step of writing", "seconds", None, writing / target),
        Row("writing", "tokens/s", None, batch * target / writing),
    ]


@torch.inference_mode()
def reader_cost(model: Any, *, batch: int, length: int) -> list[Row]:
    """The costs of a model that reads and does not write, for rows of `length` tokens, all of them guessed."""
    config: BertConfig = model.config
    formula = FORMULAS[type(config)](config, length, length)
    _check_room(formula, batch, length * (config.vocab_size if hasattr(model, "word_logits") else config.width))
    passing = _Passed.over(model, _ids(model, config.vocab_size, batch, length))
    return [
        *_sizes(model),
        Row("multiply-adds of a pass", "", batch * formula.multiply_adds, passing.adds),
        Row("FLOPs a token", "", 2 * formula.multiply_adds / length, 2 * passing.adds / batch / length),
        Row("attention matrices", "bytes", BYTES * batch * formula.attention_numbers, passing.weights),
        *passing.times,
        Row("reading", "tokens/s", None, batch * length / passing.seconds),
    ]


@torch.inference_mode()
def pair_cost(model: Any, *, batch: int, length: int, regions: int) -> list[Row]:
    """The costs of a model that reads a text beside a picture: of `length` tokens, all guessed, and so many regions."""
    config: ViLBERTConfig = model.config
    formula = FORMULAS[type(config)](config, length, length, regions)
    _check_room(formula, batch, length * config.vocab_size + regions * config.seeing.numbers)
    ids = _ids(model, config.vocab_size, batch, length)
    picture = torch.randn(batch, regions, config.seeing.numbers), torch.rand(batch, regions, BOX) + 0.1
    passing = _Passed.over(model, ids, torch.zeros_like(ids), *picture)
    return [
        *_sizes(model),
        Row("multiply-adds of a pass", "", batch * formula.multiply_adds, passing.adds),
        Row("attention matrices", "bytes", BYTES * batch * formula.attention_numbers, passing.weights),
        *passing.times,
        Row("reading", "pairs/s", None, batch / passing.seconds),
    ]


def _sizes(model: Any) -> list[Row]:
    parameters = list(model.parameters())
    return [
        Row("parameters", "", None, sum(parameter.numel() for parameter in parameters)),
        Row("memory of the parameters", "bytes", None, sum(parameter.nbytes for parameter in parameters)),
    ]


@dataclass(frozen=True)
class _Passed:
    """What a pass over all places took."""

    adds: float  # multiply-adds
    weights: float  # bytes of the attention matrices
    seconds: float

    @classmethod
    def over(cls, model: Any, *inputs: Tensor) -> "_Passed":
        attention = _attention_taps(model)
        return cls(
            counted(model, *inputs), _watched(model, attention, *inputs), _seconds(lambda: _pass(model, *inputs))
        )

    @property
    def times(self) -> list[Row]:
        return [
            Row("a pass over all places", "seconds", None, self.seconds),
            Row("arithmetic of the pass", "GFLOP/s", None, 2 * self.adds / self.seconds / 1e9),
        ]


def _continues(model: Any) -> bool:
    """A language model: its source, the prompt, and its target are one text."""
    return isinstance(model.config, CausalLMConfig)


def _pass(model: Any, *inputs: Tensor) -> Any:
    """Over source and target; or over the rows of a reader."""
    return model(torch.cat(inputs, dim=1)) if _continues(model) else model(*inputs)


def _start(model: Any, sources: Tensor, targets: Tensor) -> Any:
    """After reading; the first target is what is stepped first."""
    return model.start(torch.cat([sources, targets[:, :1]], dim=1).tolist() if _continues(model) else sources)


def _sources(model: Any, batch: int, length: int) -> Tensor:
    """Random words; or, where a model sees, random pictures, whose size is the model's."""
    config = model.config
    if isinstance(config, CaptionerConfig):
        return torch.randn(batch, 3, config.side, config.side)
    return _ids(model, config.vocab_size, batch, length)


def _check_room(formula: Formula, batch: int, outputs: int) -> None:
    needed = BYTES * batch * (formula.attention_numbers + formula.state_numbers + outputs)
    if needed > LARGEST:
        raise InputError(
            f"attention matrices, state and outputs of this batch would take {needed / 1e9:,.0f} GB, "
            f"measured is up to {LARGEST / 1e9:.0f}; give a smaller batch or shorter lengths"
        )


def _seconds(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def _ids(model: Any, vocab_size: int, batch: int, length: int) -> Tensor:
    return random_words(vocab_size, model.config.special_ids, batch * length).view(batch, length)


def counted(model: Any, *inputs: Tensor) -> float:
    """Multiply-adds of all matrix products of a pass, with attention written out so that its products are seen."""
    counter = FlopCounterMode(display=False)
    attention = _attention_taps(model)
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learning:  # a module may give out a view of one, and the counter would look for its history
        parameter.requires_grad_(False)
    with counter, kernels.left_out():
        _watched(model, attention, *inputs)
    for parameter in learning:
        parameter.requires_grad_(True)
    return counter.get_total_flops() / 2


def _attention_taps(model: Any) -> list[str]:
    return [path for path in taps(model) if path.endswith("weights")]


def _watched(model: Any, attention: list[str], *inputs: Tensor) -> float:
    """Run with these taps watched; the bytes of what came by."""
    if not attention:
        _pass(model, *inputs)
        return 0.0
    with watch(model, *attention) as seen:
        _pass(model, *inputs)
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
    elif isinstance(thing, KVCache):
        yield from thing.seen[:2]
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
    model = Transformer(TransformerConfig(vocab_size=16, width=8, heads=1, layers=1, feed_forward=8)).eval()
    found = []
    for n, m in lengths:
        counted_bytes = _watched(model, _attention_taps(model), _ids(model, 16, 1, n), _ids(model, 16, 1, m))
        found.append(Pairing(n, m, n * n + m * m + n * m, int(counted_bytes) // BYTES))
    return found
