"""The laws that a model of this house keeps, each measured: what `regard check` proves.

A law compares two ways to the same numbers and reports the largest deviation it found, in spreads of the logits; or it
asks that something does change, and reports the smallest change. The laws are for trained models: a fresh one whose
last matrices start at zero uses neither its memory nor all its parameters yet. For a module of your own, say in a file
how it is called, and give the file to `regard check`:

    from my_model import Net
    from regard.experiments.laws import ModelAdapter
    from regard.models.symbols import Symbols

    class Mine(Subject):
        def logits(self, source, target):
            return self.module(src=source, tgt=target)

    def subject():
        return Mine(Net(), vocabulary=8000, symbols=Symbols(padding=0, begin=1, end=2))

A module that reads both ways and does not write is a `Reading`: override its `read` (see regard.experiments.adapters);
one that reads beside a picture a `ReadingPictures`: override its `say`; one that captions pictures a `Seeing`, whose
source is painted from words.
From Python, `check(adapter())` gives the findings one by one. Laws that need what a module does not have are left out,
and say so: step-by-step writing (override `start` and `step`, see regard.generation.decode), taps (regard.layers.tap),
`positions` (override the property: the modules whose output says where a word stands).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.experiments.adapters import Continuing, Missing, ModelAdapter, Reading, ReadingPictures
from regard.experiments.random_inputs import random_words
from regard.generation import Beam, Greedy, generate
from regard.generation.decode import Limits
from regard.inspection.capture import watch
from regard.layers.tap import taps
from regard.training.validation import evaluating

SAME = 1e-4  # spreads of the logits: what single precision may lose on the way
CHANGED = 1e-3  # the least that counts as a change
LENGTHS = (9, 4, 6, 1, 7)  # of the sources the laws are tried on
TARGET = 8  # tokens of each target


@dataclass(frozen=True)
class Law:
    """A measurement and the bound it must keep."""

    name: str
    says: str
    measure: Callable[[ModelAdapter], float]
    bound: float
    at_least: bool = False  # the measurement must reach the bound instead of staying below it


@dataclass(frozen=True)
class Finding:
    """What a law found; `holds` is None where it does not apply. `why` says why it was left out, or what was raised."""

    law: Law
    deviation: float | None
    why: str = ""

    @property
    def holds(self) -> bool | None:
        if self.deviation is None:
            return None
        # A deviation that is not a number compares as false: the law is broken.
        return self.deviation >= self.law.bound if self.law.at_least else self.deviation <= self.law.bound

    def __str__(self) -> str:
        if self.deviation is None:
            return f"-  {self.law.name:<30}{'':<24}left out: {self.why}"
        mark = "ok" if self.holds else "NO"
        sign = ">=" if self.law.at_least else "<="
        says = f"raised {self.why}" if self.why else self.law.says
        return f"{mark} {self.law.name:<30}{self.deviation:<10.2g}{sign} {self.law.bound:<10.2g} {says}"


def check(adapter: ModelAdapter, seed: int = 0) -> Iterator[Finding]:
    """Hold a model against every law, in evaluation mode, on random words."""
    for law in LAWS:
        torch.manual_seed(seed)
        with evaluating(adapter.module):
            try:
                yield Finding(law, float(law.measure(adapter)))
            except Missing as missing:
                yield Finding(law, None, str(missing))
            except Exception as error:  # a model that cannot even be run so does not keep the law
                yield Finding(law, math.nan, " ".join(f"{type(error).__name__}: {error}".split())[:200])


# ------------------------------------------------ inputs


def random_source(adapter: ModelAdapter, lengths: Sequence[int] = LENGTHS) -> Tensor:
    """Random words, each row closed by the end symbol and padded behind it."""
    special_ids = adapter.special_ids
    rows = torch.full((len(lengths), max(lengths) + 1), special_ids.pad_id)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = random_words(adapter.vocab_size, adapter.config.special_ids, length)
        row[length] = special_ids.eos_id
    return rows


def random_target(adapter: ModelAdapter, rows: int = len(LENGTHS), length: int = TARGET) -> Tensor:
    """Random words behind the begin symbol."""
    words = random_words(adapter.target_vocab_size, adapter.config.special_ids, rows * (length - 1))
    return torch.cat([torch.full((rows, 1), adapter.special_ids.bos_id), words.view(rows, length - 1)], dim=1)


def _apart(found: Tensor, wanted: Tensor) -> float:
    """The largest difference in spreads of the logits: from the 10th to the 90th of a hundred, so that a few forbidden
    words at -1e9 do not count. Words at -inf must be the same on both sides."""
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


def _all_apart(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The output that is furthest apart, each in its own spreads; there may be more places than are wanted."""
    pairs = zip(found, wanted, strict=True)
    return _worst(_apart(one[:, : other.shape[1]], other) for one, other in pairs)


def _worst(deviations: Iterable[float]) -> float:
    """The largest; what is not a number is worse than all."""
    return torch.tensor(list(deviations)).max().item()


def _least(changes: Iterable[float]) -> float:
    """The smallest; what is not a number is less than all."""
    return torch.tensor(list(changes)).min().item()


# ------------------------------------------------ measurements


@torch.no_grad()
def causality(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    logits = adapter.logits(source, target)

    def with_another_end(place: int) -> Tensor:
        return torch.cat([target[:, :place], random_target(adapter)[:, place:]], dim=1)

    return _worst(
        _apart(adapter.logits(source, with_another_end(place))[:, :place], logits[:, :place])
        for place in range(1, target.shape[1])
    )


@torch.no_grad()
def padding_invariance(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    outputs = adapter.outputs(source, target)
    wider = torch.cat([source, torch.full((len(source), 6), adapter.special_ids.pad_id)], dim=1)
    longer = torch.cat([target, torch.full((len(target), 3), adapter.special_ids.pad_id)], dim=1)
    return _all_apart(adapter.outputs(wider, longer), outputs)


@torch.no_grad()
def batch_is_single(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    together = adapter.outputs(source, target)
    alone = [output.clone() for output in together]
    for row, length in enumerate(LENGTHS):
        single = adapter.outputs(source[row : row + 1, : length + 1], target[row : row + 1])
        for output, one in zip(alone, single, strict=True):
            output[row, : one.shape[1]] = one[0]
    return _all_apart(alone, together)


@torch.no_grad()
def cached_is_uncached(adapter: ModelAdapter) -> float:
    """Step by step, with the rows changing places in the middle, and at last two beams for each source."""
    source, target = random_source(adapter), random_target(adapter)
    state = adapter.start(source)
    deviations = []
    for place in range(target.shape[1]):
        if place in (2, 5):
            rows = torch.randint(len(source), (len(source),)) if place == 2 else torch.arange(len(source)).flip(0)
            state.reorder(rows)
            source, target = source[rows], target[rows]
        if place == 6:
            rows = torch.arange(len(source))[:, None].expand(-1, 2)
            state.reorder(rows)
            source, target = source[rows.flatten()], target[rows.flatten()]
            target[:, place:] = random_target(adapter, len(target), 1 + target.shape[1] - place)[:, 1:]
        logits, state = adapter.step(target[:, place], state)
        deviations.append(_apart(logits, adapter.logits(source, target[:, : place + 1])[:, -1]))
    return _worst(deviations)


def beam_of_one_is_greedy(adapter: ModelAdapter) -> float:
    source = random_source(adapter)
    limits = Limits([2 * TARGET] * len(source))
    pairs = zip(generate(adapter, source, Greedy(), limits), generate(adapter, source, Beam(1), limits), strict=True)
    return sum(greedy[0].tokens != beam[0].tokens for greedy, beam in pairs)


@torch.no_grad()
def watched_is_unwatched(adapter: ModelAdapter) -> float:
    source, target = random_source(adapter), random_target(adapter)
    plain = adapter.outputs(source, target)
    with watch(adapter.module, *_taps(adapter, "")):
        return _all_apart(adapter.outputs(source, target), plain)


@torch.no_grad()
def rows_sum_to_one(adapter: ModelAdapter) -> float:
    # Of ragged prompts the blanks before the shorter ones see nothing, and their rows are zero.
    lengths = (9,) * len(LENGTHS) if isinstance(adapter, Continuing) else LENGTHS
    with watch(adapter.module, *_taps(adapter, ".weights")) as seen:
        adapter.outputs(random_source(adapter, lengths), random_target(adapter))
    rows = torch.cat([value.sum(-1).flatten() for values in seen.values() for value in values])
    return (rows - 1).abs().max().item()


@torch.no_grad()
def a_set_without_positions(adapter: ModelAdapter) -> float:
    with _no_positions(adapter):
        return _moved_by_permutation(adapter)


@torch.no_grad()
def a_sequence_with_positions(adapter: ModelAdapter) -> float:
    if not (adapter.positions or adapter.ordered):
        raise Missing("it names no `positions`")
    return _moved_by_permutation(adapter)


@torch.no_grad()
def memory_is_used(adapter: ModelAdapter) -> float:
    source, other, target = random_source(adapter), random_source(adapter), random_target(adapter)
    one, two = adapter.logits(source, target), adapter.logits(other, target)
    return _least(_apart(a, b) for a, b in zip(one, two, strict=True))


@torch.no_grad()
def reads_both_ways(adapter: ModelAdapter) -> float:
    """How far the words before a place move, at least, when those from there on are others."""
    if not isinstance(adapter, Reading):
        raise Missing("it writes, and may not see what follows")
    length = LENGTHS[0]
    source, other = (random_source(adapter, (length,) * len(LENGTHS)) for _ in range(2))
    target = random_target(adapter)
    wanted = adapter.outputs(source, target)

    def moved(place: int) -> Iterator[float]:
        changed = torch.cat([source[:, :place], other[:, place:]], dim=1)
        pairs = zip(adapter.outputs(changed, target), wanted, strict=True)
        return (_apart(found[:, : place + 1], output[:, : place + 1]) for found, output in pairs)

    return _least(change for place in range(length) for change in moved(place))


@torch.no_grad()
def sentences_told_apart(adapter: ModelAdapter) -> float:
    if not isinstance(adapter, Reading):
        raise Missing("it is not told which sentence a word belongs to")
    if adapter.num_segments == 1:
        raise Missing("it knows one sentence only")
    source = random_source(adapter)
    first = adapter.said(source, torch.zeros_like(source))
    others = (adapter.said(source, torch.full_like(source, other)) for other in range(1, adapter.num_segments))
    return _least(_apart(one, wanted) for other in others for one, wanted in zip(other, first, strict=True))


@torch.no_grad()
def padding_regions(adapter: ModelAdapter) -> float:
    """How far the outputs move when every picture has three more regions that are padding, with anything in them."""
    source, segment_ids, regions, boxes = _beside_pictures(adapter)
    wider = torch.cat([regions, torch.randn_like(regions[:, :1]).expand(-1, 3, -1)], dim=1)
    longer = torch.cat([boxes, torch.zeros_like(boxes[:, :1]).expand(-1, 3, -1)], dim=1)
    assert isinstance(adapter, ReadingPictures)
    found, wanted = (
        adapter.beside(source, segment_ids, wider, longer),
        adapter.beside(source, segment_ids, regions, boxes),
    )
    return _all_apart(found, wanted)


@torch.no_grad()
def both_streams_matter(adapter: ModelAdapter) -> float:
    """How far any output of any pair moves, at least, when its picture shows something else, or its words do."""
    source, segment_ids, regions, boxes = _beside_pictures(adapter)
    assert isinstance(adapter, ReadingPictures)
    wanted = adapter.beside(source, segment_ids, regions, boxes)
    others = (
        adapter.beside(source, segment_ids, torch.randn_like(regions), boxes),
        adapter.beside(random_source(adapter), segment_ids, regions, boxes),
    )
    pairs = [pair for other in others for pair in zip(other, wanted, strict=True)]
    return _least(_apart(one[row], output[row]) for one, output in pairs for row in range(len(source)))


def _beside_pictures(adapter: ModelAdapter) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if not isinstance(adapter, ReadingPictures):
        raise Missing("it reads no text beside a picture")
    source = random_source(adapter)
    return source, source % adapter.num_segments, *adapter.pictures(source)


def dead_parameters(adapter: ModelAdapter) -> float:
    """Parameters that no gradient reaches. (A key's bias moves all scores of a row alike: softmax does not see it.)"""
    source, target = random_source(adapter, LENGTHS * 4), random_target(adapter, 4 * len(LENGTHS))
    learning = {
        name: parameter
        for name, parameter in adapter.module.named_parameters()
        if parameter.requires_grad and not name.endswith("key.bias")
    }
    if not learning:
        return 0
    with torch.enable_grad():
        outputs = [output.masked_fill(output.isinf(), 0.0) for output in adapter.outputs(source, target)]
        mixed = torch.stack([(torch.randn_like(output) * output).mean() for output in outputs]).sum()
        gradients = torch.autograd.grad(mixed, list(learning.values()), allow_unused=True)
    return sum(gradient is None or not (gradient.any() and gradient.isfinite().all()) for gradient in gradients)


def _taps(adapter: ModelAdapter, ending: str) -> list[str]:
    found = [path for path in taps(adapter.module) if path.endswith(ending)]
    if not found:
        raise Missing("it has no attention" if ending else "it has no taps")
    return found


def _moved_by_permutation(adapter: ModelAdapter) -> float:
    """How far the outputs move when the words of each source change places; the end stays where it is."""
    words = adapter.words
    if words < 2:
        raise Missing("it sees one word of a source: that has no order")
    source, target = random_source(adapter, (words,) * 3), random_target(adapter, 3)
    order = torch.cat([torch.arange(words).roll(words // 2), torch.tensor([words])])
    moved = adapter.outputs(source[:, order], target)
    return _all_apart(moved, adapter.reordered(adapter.outputs(source, target), order))


@contextmanager
def _no_positions(adapter: ModelAdapter) -> Iterator[None]:
    if adapter.ordered:
        raise Missing("it knows the order without positions, by recurrence, convolution or what it may see")
    if not adapter.positions:
        raise Missing("it names no `positions`")
    hooks = [module.register_forward_hook(_zeros) for module in adapter.positions]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _zeros(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return torch.zeros_like(output)


LAWS = [
    Law("causality", "a later word changes no earlier logit", causality, SAME),
    Law("padding", "padding changes nothing", padding_invariance, SAME),
    Law("batch = single", "what stands beside a sentence changes nothing", batch_is_single, SAME),
    Law("cached = uncached", "a step equals the full pass, also after rows changed places", cached_is_uncached, SAME),
    Law("beam 1 = greedy", "texts that differ", beam_of_one_is_greedy, 0),
    Law("watched = unwatched", "what is shown is what is computed", watched_is_unwatched, SAME),
    Law("attention rows sum to 1", "softmax over what may be seen", rows_sum_to_one, 1e-5),
    Law("a set without positions", "the source's words may change places", a_set_without_positions, SAME),
    Law("a sequence with positions", "with them they may not", a_sequence_with_positions, CHANGED, at_least=True),
    Law("the memory is used", "another source, other logits", memory_is_used, CHANGED, at_least=True),
    Law("it reads both ways", "a later word changes an earlier one", reads_both_ways, CHANGED, at_least=True),
    Law(
        "the sentences are told apart", "another sentence, other outputs", sentences_told_apart, CHANGED, at_least=True
    ),
    Law("padding regions", "empty regions of a picture change nothing", padding_regions, SAME),
    Law(
        "both streams matter",
        "another picture, or another text, changes all that is said",
        both_streams_matter,
        CHANGED,
        at_least=True,
    ),
    Law("no dead parameter", "parameters without a gradient", dead_parameters, 0),
]
