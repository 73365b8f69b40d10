"""What a model costs: its formula beside what was counted and timed.

The formula (`flops` of the model's config) has the multiply-adds of the matrices and of attention; counted are those of
every matrix product that torch computed. The state is what decoding carries from step to step: a Transformer's KV
cache, 2 · layers · batch · (N + M) · width numbers, grows with every token; a recurrent state does not. An encoder has
none: its cost is a forward pass.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regard import ops
from regard.errors import ConfigError, InputError
from regard.experiments.adapters import random_ids
from regard.inspection.capture import capture
from regard.layers.cost import ForwardCost
from regard.layers.kv_cache import KVCache
from regard.layers.tap import taps
from regard.layers.vision.regions import BOX_NUMBERS
from regard.models.base import Interface
from regard.tasks.loading import load

NUMBER_BYTES = 4  # float32
MAX_BYTES = 8e9  # that a measurement may allocate
DEFAULT_TOKENS = 128  # of a source and of a target, or what the context of the model holds
MAX_BOXES = 36  # regions of an image when the model is given boxes: the most the paper takes of a detector


@dataclass(frozen=True)
class Row:
    """One cost: what the formula says, and what was counted, held or timed."""

    name: str
    unit: str
    formula: float | None
    measured: float


class Request(NamedTuple):
    """What `regard cost MODEL` measures: rows of a batch, and tokens; None is the default of the model."""

    model: Any
    batch: int
    source: int | None
    target: int | None
    name: str  # of the model, for messages

    @property
    def context(self) -> int:
        return getattr(self.model.config, "context", 2 * DEFAULT_TOKENS)

    def ids(self, vocab_size: int, length: int) -> Tensor:
        """Random ids (B, T)."""
        return random_ids(vocab_size, self.model.config.special_ids, self.batch * length).view(self.batch, length)

    def lengths(self) -> tuple[int, int]:
        """Tokens of the source and of the target that the context holds."""
        source = self.source or max(1, min(DEFAULT_TOKENS, self.context // 2))
        return source, self.target or max(1, min(DEFAULT_TOKENS, self.context - source))

    def refuse_target(self) -> None:
        if self.target is not None:
            raise ConfigError(
                f"--target {self.target} is for models that generate; {self.name} is an encoder, leave it out"
            )


def cost_of_model(folder: Path, *, batch: int, source: int | None = None, target: int | None = None) -> list[Row]:
    """The costs of a model folder for a batch of rows of these lengths."""
    return model_cost(load(folder).model, batch=batch, source=source, target=target, name=str(folder))


@torch.inference_mode()
def model_cost(
    model: Any, *, batch: int, source: int | None = None, target: int | None = None, name: str = "the model"
) -> list[Row]:
    """The costs of one of our models."""
    return COSTS[model.interface](Request(model, batch, source, target, name))


# ------------------------------------------------ by interface


def _seq2seq_cost(request: Request) -> list[Row]:
    source, target = request.lengths()
    config = request.model.config
    formula = config.flops(source, target)
    _check_memory(formula, request.batch, target * config.output_vocab_size)
    sources = request.ids(config.vocab_size, source)
    targets = _targets(request, target)
    return _generator_cost(request, formula, (sources, targets), sources, targets)


def _causal_lm_cost(request: Request) -> list[Row]:
    """The source is the prompt: it and the target are one text."""
    source, target = request.lengths()
    config = request.model.config
    formula = config.flops(source + target)
    _check_memory(formula, request.batch, target * config.output_vocab_size)
    prompts = request.ids(config.vocab_size, source)
    targets = request.ids(config.output_vocab_size, target)
    texts = torch.cat([prompts, targets], dim=1)
    return _generator_cost(request, formula, (texts,), texts[:, : source + 1].tolist(), targets)


def _captioner_cost(request: Request) -> list[Row]:
    """An image has as many cells as the config says."""
    if request.source is not None:
        raise ConfigError(
            f"--source {request.source} is for models that read text; {request.name} reads images, leave it out"
        )
    config, target = request.model.config, request.target or DEFAULT_TOKENS
    formula = config.flops(target)
    _check_memory(formula, request.batch, target * config.output_vocab_size)
    pixels = torch.randn(request.batch, 3, config.image_size, config.image_size)
    targets = _targets(request, target)
    return _generator_cost(request, formula, (pixels, targets), pixels, targets)


def _targets(request: Request, length: int) -> Tensor:
    targets = request.ids(request.model.config.output_vocab_size, length)
    targets[:, 0] = request.model.config.special_ids.bos_id
    return targets


def _generator_cost(
    request: Request, formula: ForwardCost, inputs: tuple[Tensor, ...], source: Any, targets: Tensor
) -> list[Row]:
    """A forward pass over `inputs`; then `source` is encoded, or prefilled, and the targets decoded step by step."""
    model, batch, target = request.model, request.batch, targets.shape[1]
    forward = _Forward.over(model, *inputs)
    prefill = _seconds(lambda: model.start(source))
    state = model.start(source)
    begin = time.perf_counter()
    for tokens in targets.T:
        _, state = model.step(tokens, state)
    decoding = time.perf_counter() - begin
    adds = formula.multiply_adds
    return [
        *_parameter_rows(model),
        Row("multiply-adds, forward pass", "", batch * adds, forward.multiply_adds),
        Row("FLOPs per target token", "", 2 * adds / target, 2 * forward.multiply_adds / batch / target),
        Row("attention matrices", "bytes", NUMBER_BYTES * batch * formula.attention_weights, forward.weight_bytes),
        Row("KV cache, or state", "bytes", NUMBER_BYTES * batch * formula.state_numbers, bytes_of(state)),
        Row("  allocated for it", "bytes", None, sum(storages_of(state).values())),
        *forward.time_rows,
        Row("prefill, or encoding the source", "seconds", None, prefill),
        Row("decode step", "seconds", None, decoding / target),
        Row("decoding", "tokens/s", None, batch * target / decoding),
    ]


def _encoder_cost(request: Request) -> list[Row]:
    """All tokens of a row are predicted."""
    request.refuse_target()
    model, batch, config = request.model, request.batch, request.model.config
    length = request.source or min(DEFAULT_TOKENS, request.context)
    formula = config.flops(length, length)
    _check_memory(formula, batch, length * (config.vocab_size if hasattr(model, "token_logits") else config.width))
    forward = _Forward.over(model, request.ids(config.vocab_size, length))
    adds = formula.multiply_adds
    return [
        *_parameter_rows(model),
        Row("multiply-adds, forward pass", "", batch * adds, forward.multiply_adds),
        Row("FLOPs per token", "", 2 * adds / length, 2 * forward.multiply_adds / batch / length),
        Row("attention matrices", "bytes", NUMBER_BYTES * batch * formula.attention_weights, forward.weight_bytes),
        *forward.time_rows,
        Row("encoding", "tokens/s", None, batch * length / forward.seconds),
    ]


def _vision_language_cost(request: Request) -> list[Row]:
    """All tokens of a text are predicted; an image has the regions of its grid, or MAX_BOXES, and the whole image."""
    request.refuse_target()
    model, batch, config = request.model, request.batch, request.model.config
    length = request.source or min(DEFAULT_TOKENS, request.context)
    regions = 1 + (config.vision.grid**2 or MAX_BOXES)
    formula = config.flops(length, length, regions)
    _check_memory(formula, batch, length * config.vocab_size + regions * config.vision.feature_size)
    ids = request.ids(config.vocab_size, length)
    image = torch.randn(batch, regions, config.vision.feature_size), torch.rand(batch, regions, BOX_NUMBERS) + 0.1
    forward = _Forward.over(model, ids, torch.zeros_like(ids), *image)
    return [
        *_parameter_rows(model),
        Row("multiply-adds, forward pass", "", batch * formula.multiply_adds, forward.multiply_adds),
        Row("attention matrices", "bytes", NUMBER_BYTES * batch * formula.attention_weights, forward.weight_bytes),
        *forward.time_rows,
        Row("encoding", "pairs/s", None, batch / forward.seconds),
    ]


COSTS: dict[Interface, Callable[[Request], list[Row]]] = {
    "seq2seq": _seq2seq_cost,
    "causal_lm": _causal_lm_cost,
    "captioner": _captioner_cost,
    "encoder": _encoder_cost,
    "vision_language": _vision_language_cost,
}


# ------------------------------------------------ counting and timing


def _parameter_rows(model: Any) -> list[Row]:
    parameters = list(model.parameters())
    return [
        Row("parameters", "", None, sum(parameter.numel() for parameter in parameters)),
        Row("memory of the parameters", "bytes", None, sum(parameter.nbytes for parameter in parameters)),
    ]


@dataclass(frozen=True)
class _Forward:
    """What a forward pass over all positions took."""

    multiply_adds: float
    weight_bytes: float  # of the attention matrices
    seconds: float

    @classmethod
    def over(cls, model: Any, *inputs: Tensor) -> "_Forward":
        return cls(
            counted(model, *inputs),
            _weight_bytes(model, _attention_taps(model), *inputs),
            _seconds(lambda: model(*inputs)),
        )

    @property
    def time_rows(self) -> list[Row]:
        return [
            Row("forward pass", "seconds", None, self.seconds),
            Row("arithmetic of the forward pass", "GFLOP/s", None, 2 * self.multiply_adds / self.seconds / 1e9),
        ]


def _check_memory(formula: ForwardCost, batch: int, outputs: int) -> None:
    needed = NUMBER_BYTES * batch * (formula.attention_weights + formula.state_numbers + outputs)
    if needed > MAX_BYTES:
        raise InputError(
            f"attention matrices, state and outputs of this batch would take {needed / 1e9:,.0f} GB, the limit is "
            f"{MAX_BYTES / 1e9:.0f} GB; give a smaller batch or shorter lengths"
        )


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def counted(model: Any, *inputs: Tensor) -> float:
    """Multiply-adds of all matrix products of a forward pass, with attention written out so that they are counted."""
    counter = FlopCounterMode(display=False)
    attention = _attention_taps(model)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learned:  # a module may return a view of one, and the counter would look for its history
        parameter.requires_grad_(False)
    with counter, ops.disabled():
        _weight_bytes(model, attention, *inputs)
    for parameter in learned:
        parameter.requires_grad_(True)
    return counter.get_total_flops() / 2


def _attention_taps(model: Any) -> list[str]:
    return [path for path in taps(model) if path.endswith("weights")]


def _weight_bytes(model: Any, attention: list[str], *inputs: Tensor) -> float:
    """Run with these taps watched; the bytes of their values."""
    if not attention:
        model(*inputs)
        return 0.0
    with capture(model, *attention) as watched:
        model(*inputs)
    return float(sum(value.nbytes for values in watched.values() for value in values))


def bytes_of(state: Any) -> int:
    """Bytes of the numbers in a state; masks and token ids are not counted."""
    return sum(tensor.nbytes for tensor in _numbers(state))


def storages_of(state: Any) -> dict[int, int]:
    """Their storages by address: a cache allocates in advance, and a view keeps all of the tensor it was cut from."""
    storages = (tensor.untyped_storage() for tensor in _numbers(state))
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def _numbers(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor) and state.is_floating_point():
        yield state
    elif isinstance(state, KVCache):
        yield from state.contents[:2]
    elif isinstance(state, (list, tuple)):
        yield from (number for part in state for number in _numbers(part))
    elif is_dataclass(state):
        yield from (number for field in fields(state) for number in _numbers(getattr(state, field.name)))
