"""The laws (invariants) that every model keeps, each measured: what `regard check` proves.

A law compares two ways to compute the same outputs and reports the largest deviation, in spreads of the logits; or it
requires that a change of the input changes the output, and reports the smallest change. The laws are for trained
models: a fresh one whose residual branches start at zero does not use its source or all its parameters yet. For a
module of your own, write a file that says how it is called, and give the file to `regard check`:

    from my_model import Net
    from regard.experiments.laws import ModelAdapter
    from regard.models.base import SpecialIds

    class Mine(ModelAdapter):
        def logits(self, source, target):
            return self.module(src=source, tgt=target)

    def adapter():
        return Mine(Net(), vocab_size=8000, special_ids=SpecialIds(pad_id=0, bos_id=1, eos_id=2))

For a bidirectional encoder, subclass `EncoderAdapter` and override `encode`; for an encoder of text and images,
`VisionLanguageAdapter` and `named_outputs`; for a captioner, `CaptionerAdapter` (all in regard.experiments.adapters).
From Python, `check(adapter())` yields the findings one by one. A law is skipped, with the reason, when the module lacks
what it needs: decoding step by step (override `start` and `step`, see regard.generation.decode), taps
(regard.layers.tap), or `positions` (override the property: the modules whose output is a position).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.experiments.adapters import (
    CausalLMAdapter,
    EncoderAdapter,
    ModelAdapter,
    NotApplicable,
    VisionLanguageAdapter,
    random_ids,
)
from regard.generation import Beam, Greedy, generate
from regard.generation.decode import Limits
from regard.inspection.capture import capture, points
from regard.training.validation import evaluation_mode

SAME = 1e-4  # the largest deviation, in spreads of the logits, that rounding to float32 may cause
CHANGED = 1e-3  # the smallest that counts as a change


@dataclass(frozen=True)
class Law:
    """A measurement and its bound."""

    name: str
    statement: str
    measure: Callable[[ModelAdapter], float]
    bound: float
    at_least: bool = False  # the measurement must reach the bound instead of staying below it


@dataclass(frozen=True)
class Finding:
    """What a law found; `holds` is None when it does not apply. `why` says why it was skipped, or what was raised."""

    law: Law
    deviation: float | None
    why: str = ""

    @property
    def holds(self) -> bool | None:
        if self.deviation is None:
            return None
        # NaN compares as false: the law is broken.
        return self.deviation >= self.law.bound if self.law.at_least else self.deviation <= self.law.bound

    def __str__(self) -> str:
        if self.deviation is None:
            return f"-  {self.law.name:<30}{'':<24}skipped: {self.why}"
        mark = "ok" if self.holds else "NO"
        sign = ">=" if self.law.at_least else "<="
        statement = f"raised {self.why}" if self.why else self.law.statement
        return f"{mark} {self.law.name:<30}{self.deviation:<10.2g}{sign} {self.law.bound:<10.2g} {statement}"


def check(adapter: ModelAdapter, seed: int = 0) -> Iterator[Finding]:
    """Check every law on a model, in evaluation mode, with random tokens."""
    for law in LAWS:
        yield check_law(law, adapter, seed)


def check_law(law: Law, adapter: ModelAdapter, seed: int = 0) -> Finding:
    """Check one law, as `check` does."""
    torch.manual_seed(seed)
    with evaluation_mode(adapter.module):
        try:
            return Finding(law, float(law.measure(adapter)))
        except NotApplicable as reason:
            return Finding(law, None, str(reason))
        except Exception as error:  # a model that fails on these inputs breaks the law
            return Finding(law, math.nan, " ".join(f"{type(error).__name__}: {error}".split())[:200])


# ------------------------------------------------ inputs


def random_source(adapter: ModelAdapter, lengths: Sequence[int] | None = None) -> Tensor:
    """Rows of random tokens, each followed by `eos_id` and padding."""
    lengths = lengths or adapter.lengths
    special_ids = adapter.special_ids
    rows = torch.full((len(lengths), max(lengths) + 1), special_ids.pad_id)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = random_ids(adapter.vocab_size, adapter.config.special_ids, length)
        row[length] = special_ids.eos_id
    return rows


def random_target(adapter: ModelAdapter, rows: int | None = None, length: int | None = None) -> Tensor:
    """Random tokens after `bos_id`."""
    rows, length = rows or len(adapter.lengths), length or adapter.target_length
    ids = random_ids(adapter.target_vocab_size, adapter.config.special_ids, rows * (length - 1))
    return torch.cat([torch.full((rows, 1), adapter.special_ids.bos_id), ids.view(rows, length - 1)], dim=1)


def _deviation(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, in spreads of the logits: from the 10th to the 90th percentile, so that a few forbidden
    tokens at -1e9 do not count. Tokens at -inf must be the same on both sides."""
    finite = wanted.isfinite()
    if not torch.equal(finite, found.isfinite()):
        return math.inf
    found, wanted = found[finite], wanted[finite]
    if not len(wanted):
        return math.nan  # nothing to compare
    ranked = wanted.flatten().sort().values
    spread = ranked[int(0.9 * (len(ranked) - 1))] - ranked[int(0.1 * (len(ranked) - 1))]
    scale = spread if spread > 0 else wanted.abs().max().clamp(min=1e-30)
    return ((found - wanted).abs().max() / scale).item()


def _largest_deviation(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """Of the outputs, each in its own spreads; `found` may have more positions than `wanted`."""
    pairs = zip(found, wanted, strict=True)
    return _largest(_deviation(one[:, : other.shape[1]], other) for one, other in pairs)


def _largest(deviations: Iterable[float]) -> float:
    """NaN, if there is one, counts as the largest."""
    return torch.tensor(list(deviations)).max().item()


def _smallest(changes: Iterable[float]) -> float:
    """NaN, if there is one, counts as the smallest."""
    return torch.tensor(list(changes)).min().item()


# ------------------------------------------------ measurements


@torch.no_grad()
def causality(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    logits = adapter.logits(source, target)

    def with_another_end(position: int) -> Tensor:
        return torch.cat([target[:, :position], random_target(adapter)[:, position:]], dim=1)

    return _largest(
        _deviation(adapter.logits(source, with_another_end(position))[:, :position], logits[:, :position])
        for position in range(1, target.shape[1])
    )


@torch.no_grad()
def padding_invariance(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    outputs = adapter.outputs(source, target)
    wider = torch.cat([source, torch.full((len(source), adapter.padding), adapter.special_ids.pad_id)], dim=1)
    longer = torch.cat([target, torch.full((len(target), min(3, adapter.padding)), adapter.special_ids.pad_id)], dim=1)
    return _largest_deviation(adapter.outputs(wider, longer), outputs)


@torch.no_grad()
def batch_is_single(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    together = adapter.outputs(source, target)
    alone = [output.clone() for output in together]
    for row, length in enumerate(adapter.lengths):
        single = adapter.outputs(source[row : row + 1, : length + 1], target[row : row + 1])
        for output, one in zip(alone, single, strict=True):
            output[row, : one.shape[1]] = one[0]
    return _largest_deviation(alone, together)


@torch.no_grad()
def cached_is_uncached(adapter: ModelAdapter) -> float:
    """Step by step, with the rows reordered in the middle, and two beams for each source at the end."""
    source, target = random_source(adapter), random_target(adapter)
    state = adapter.start(source)
    deviations = []
    for position in range(target.shape[1]):
        if position in (2, 5):
            rows = torch.randint(len(source), (len(source),)) if position == 2 else torch.arange(len(source)).flip(0)
            state.reorder(rows)
            source, target = source[rows], target[rows]
        if position == 6:
            rows = torch.arange(len(source))[:, None].expand(-1, 2)
            state.reorder(rows)
            source, target = source[rows.flatten()], target[rows.flatten()]
            target[:, position:] = random_target(adapter, len(target), 1 + target.shape[1] - position)[:, 1:]
        logits, state = adapter.step(target[:, position], state)
        deviations.append(_deviation(logits, adapter.logits(source, target[:, : position + 1])[:, -1]))
    return _largest(deviations)


def beam_of_one_is_greedy(adapter: ModelAdapter) -> float:
    source = random_source(adapter)
    limits = Limits([2 * adapter.target_length] * len(source))
    pairs = zip(generate(adapter, source, Greedy(), limits), generate(adapter, source, Beam(1), limits), strict=True)
    return sum(greedy[0].tokens != beam[0].tokens for greedy, beam in pairs)


@torch.no_grad()
def watched_is_unwatched(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    unwatched = adapter.outputs(source, target)
    with capture(adapter.module, *_taps(adapter, "")):
        return _largest_deviation(adapter.outputs(source, target), unwatched)


@torch.no_grad()
def rows_sum_to_one(adapter: ModelAdapter) -> float:
    # The left padding of shorter prompts attends to nothing: its rows are zero.
    lengths = adapter.lengths
    if isinstance(adapter, CausalLMAdapter):
        lengths = adapter.lengths[:1] * len(adapter.lengths)
    with capture(adapter.module, *_taps(adapter, ".weights")) as watched:
        adapter.outputs(random_source(adapter, lengths), random_target(adapter))
    rows = torch.cat([value.sum(-1).flatten() for values in watched.values() for value in values])
    return (rows - 1).abs().max().item()


@torch.no_grad()
def a_set_without_positions(adapter: ModelAdapter) -> float:
    with _no_positions(adapter):
        return _deviation_when_permuted(adapter)


@torch.no_grad()
def a_sequence_with_positions(adapter: ModelAdapter) -> float:
    if not (adapter.positions or adapter.is_order_aware):
        raise NotApplicable("it names no `positions`")
    return _deviation_when_permuted(adapter)


@torch.no_grad()
def source_is_used(adapter: ModelAdapter) -> float:
    source, other, target = random_source(adapter), random_source(adapter), random_target(adapter)
    one, two = adapter.logits(source, target), adapter.logits(other, target)
    return _smallest(_deviation(a, b) for a, b in zip(one, two, strict=True))


@torch.no_grad()
def is_bidirectional(adapter: ModelAdapter) -> float:
    """The smallest change of the outputs before a position when the tokens from there on are others."""
    if not isinstance(adapter, EncoderAdapter):
        raise NotApplicable("it generates, and may not see later tokens")
    length = adapter.lengths[0]
    source, other = (random_source(adapter, (length,) * len(adapter.lengths)) for _ in range(2))
    target = random_target(adapter)
    wanted = adapter.outputs(source, target)

    def changes(position: int) -> Iterator[float]:
        changed = torch.cat([source[:, :position], other[:, position:]], dim=1)
        pairs = zip(adapter.outputs(changed, target), wanted, strict=True)
        return (_deviation(found[:, : position + 1], output[:, : position + 1]) for found, output in pairs)

    return _smallest(change for position in range(length) for change in changes(position))


@torch.no_grad()
def segment_ids_matter(adapter: ModelAdapter) -> float:
    if not isinstance(adapter, EncoderAdapter):
        raise NotApplicable("it takes no segment ids")
    if adapter.num_segments == 1:
        raise NotApplicable("it has one segment only")
    source = random_source(adapter)
    first = adapter.outputs_of_segments(source, torch.zeros_like(source))
    others = (
        adapter.outputs_of_segments(source, torch.full_like(source, other)) for other in range(1, adapter.num_segments)
    )
    return _smallest(_deviation(one, wanted) for other in others for one, wanted in zip(other, first, strict=True))


@torch.no_grad()
def region_padding_invariance(adapter: ModelAdapter) -> float:
    """The largest deviation when every image gets three more regions that are padding, whatever their features."""
    model, source, segment_ids, regions, boxes = _texts_and_images(adapter)
    wider = torch.cat([regions, torch.randn_like(regions[:, :1]).expand(-1, 3, -1)], dim=1)
    longer = torch.cat([boxes, torch.zeros_like(boxes[:, :1]).expand(-1, 3, -1)], dim=1)
    found = model.outputs_of_images(source, segment_ids, wider, longer)
    return _largest_deviation(found, model.outputs_of_images(source, segment_ids, regions, boxes))


@torch.no_grad()
def both_streams_matter(adapter: ModelAdapter) -> float:
    """The smallest change of any output of any pair when its image, or its text, is another."""
    model, source, segment_ids, regions, boxes = _texts_and_images(adapter)
    wanted = model.outputs_of_images(source, segment_ids, regions, boxes)
    others = (
        model.outputs_of_images(source, segment_ids, torch.randn_like(regions), boxes),
        model.outputs_of_images(random_source(adapter), segment_ids, regions, boxes),
    )
    pairs = [pair for other in others for pair in zip(other, wanted, strict=True)]
    return _smallest(_deviation(one[row], output[row]) for one, output in pairs for row in range(len(source)))


def _texts_and_images(adapter: ModelAdapter) -> tuple[VisionLanguageAdapter, Tensor, Tensor, Tensor, Tensor]:
    if not isinstance(adapter, VisionLanguageAdapter):
        raise NotApplicable("it takes no text and image together")
    source = random_source(adapter)
    return adapter, source, source % adapter.num_segments, *adapter.images(source)


def dead_parameters(adapter: ModelAdapter) -> float:
    """Parameters without a gradient. (The bias of a key shifts all scores of a row alike: softmax cancels it.)"""
    source, target = random_source(adapter, adapter.lengths * 4), random_target(adapter, 4 * len(adapter.lengths))
    learned = {
        name: parameter
        for name, parameter in adapter.module.named_parameters()
        if parameter.requires_grad and not name.endswith("key.bias")
    }
    if not learned:
        return 0
    with torch.enable_grad():
        outputs = [output.masked_fill(output.isinf(), 0.0) for output in adapter.outputs(source, target)]
        mixed = torch.stack([(torch.randn_like(output) * output).mean() for output in outputs]).sum()
        gradients = torch.autograd.grad(mixed, list(learned.values()), allow_unused=True)
    return sum(gradient is None or not (gradient.any() and gradient.isfinite().all()) for gradient in gradients)


def _taps(adapter: ModelAdapter, ending: str) -> list[str]:
    found = [path for path in points(adapter.module) if path.endswith(ending)]
    if not found:
        raise NotApplicable("it has no attention" if ending else "it has no taps")
    return found


def _deviation_when_permuted(adapter: ModelAdapter) -> float:
    """The largest deviation when the tokens of each source are permuted; `eos_id` stays at the end."""
    count = adapter.permuted_tokens
    if count < 2:
        raise NotApplicable("it sees one token of a source, which has no order")
    source, target = random_source(adapter, (count,) * 3), random_target(adapter, 3)
    order = torch.cat([torch.arange(count).roll(count // 2), torch.tensor([count])])
    permuted = adapter.outputs(source[:, order], target)
    return _largest_deviation(permuted, adapter.reorder_outputs(adapter.outputs(source, target), order))


@contextmanager
def _no_positions(adapter: ModelAdapter) -> Iterator[None]:
    if adapter.is_order_aware:
        raise NotApplicable("it knows the order without positions, by recurrence, convolution or a causal mask")
    if not adapter.positions:
        raise NotApplicable("it names no `positions`")
    hooks = [module.register_forward_hook(_zeros) for module in adapter.positions]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _zeros(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return torch.zeros_like(output)


LAWS = [
    Law("causality", "a later token changes no earlier logit", causality, SAME),
    Law("padding", "padding changes nothing", padding_invariance, SAME),
    Law("batch = single", "the other rows of a batch change nothing", batch_is_single, SAME),
    Law("cached = uncached", "a decode step equals the full pass, reordered rows too", cached_is_uncached, SAME),
    Law("beam 1 = greedy", "outputs that differ", beam_of_one_is_greedy, 0),
    Law("watched = unwatched", "what is shown is what is computed", watched_is_unwatched, SAME),
    Law("attention rows sum to 1", "softmax over the keys that the mask allows", rows_sum_to_one, 1e-5),
    Law("a set without positions", "permuting the source changes nothing", a_set_without_positions, SAME),
    Law("a sequence with positions", "permuting it does", a_sequence_with_positions, CHANGED, at_least=True),
    Law("the source is used", "another source, other logits", source_is_used, CHANGED, at_least=True),
    Law("bidirectional", "a later token changes an earlier output", is_bidirectional, CHANGED, at_least=True),
    Law("segment ids matter", "another segment, other outputs", segment_ids_matter, CHANGED, at_least=True),
    Law("region padding", "padding regions of an image change nothing", region_padding_invariance, SAME),
    Law("both streams matter", "another image or text, other outputs", both_streams_matter, CHANGED, at_least=True),
    Law("no dead parameter", "parameters without a gradient", dead_parameters, 0),
]
