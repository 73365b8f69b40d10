"""The decoding protocol, and the loop that generates one token per row and step.

A generator offers `state = model.start(inputs)` (prefill) and `logits, state = model.step(tokens, state)`; its state
offers `first`, the tokens to step first, and `reorder(rows)`. Every strategy works with every model that does.

One more protocol is optional. The output projection is a quarter of a translator's step and a third of a small GPT's.
A model whose `step` and `logits` are marked with `layers.decoding.shortlisted` also offers
`hidden, state = model.decode_step(tokens, state)` and `model.argmax_shortlist()`: greedy decoding without scores then
finds the next token from the hidden states, without computing all logits.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.errors import InputError
from regard.ops.shortlist import ArgmaxShortlist
from regard.ops.topk import logsumexp


class State(Protocol):
    """What a model carries from step to step."""

    first: Tensor

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was. Rows are (N,), or (inputs, beams) whose lines share an input."""


class Generator(Protocol):
    """A model that can generate."""

    config: Any  # its `special_ids` have `eos_id` and `pad_id`, which is never generated; None where there is none

    def start(self, inputs: Any) -> Any: ...

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]: ...


OnToken = Callable[[int, int, list[int]], bool]


@dataclass(frozen=True)
class Limits:
    """How much is generated, and what ends a text.

    Row i gets at most `max_new_tokens[i]` tokens, eos not counted, and at least `min_new_tokens`. A text that reaches
    its limit is cut off there; with `force_eos`, beam search ranks it as if eos followed with probability 1.
    `row_ids[i]` is the caller's number of row i where rows were sorted or batched; a sample's random stream depends on
    it. Only ids below `vocab_size` are generated: an embedding matrix may have more rows than the tokenizer has tokens.
    Log probabilities are the model's, which gives padding its share, or, with `renormalize`, those of the allowed ids.

    `stop_ids` end a text as the model's own eos does. `prompts[i]` stands before the text of row i. After each token,
    `on_token(i, s, tokens)` gets the tokens of sample s of row i so far; the text ends where it returns True.
    """

    max_new_tokens: Sequence[int]
    min_new_tokens: int = 0
    row_ids: Sequence[int] | None = None
    force_eos: bool = False
    renormalize: bool = False
    stop_ids: Collection[int] = ()
    prompts: Sequence[Sequence[int]] | None = None
    on_token: OnToken | None = None
    vocab_size: int | None = None


@dataclass(frozen=True)
class Hypothesis:
    """One generated text: its tokens without eos, and its log probability."""

    tokens: list[int]
    log_probability: float  # of all tokens, and of eos where it was reached; NaN: not computed
    score: float  # what the strategy ranks by; NaN likewise
    ended: bool  # False: cut off at the limit
    sample: int = 0  # its number among the samples of one input


class Strategy(Protocol):
    """How tokens are chosen; a value such as `Greedy()` or `Beam(4)`."""

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        """The hypotheses of each input, the best first."""


@torch.inference_mode()
def generate(model: Generator, inputs: Any, strategy: Strategy, limits: Limits) -> list[list[Hypothesis]]:
    """The strategy's hypotheses for each row of the inputs, the best first."""
    return strategy.search(model, inputs, limits)


# Given logits (B, V), the number of each row, how many tokens it has, and those, its prompt included: the next (B,).
Choose = Callable[[Tensor, list[int], list[int], list[list[int]]], Tensor]


class Next(NamedTuple):
    """One more token for every row."""

    tokens: Tensor  # (B,)
    log_probabilities: Tensor  # (B,), or NaN
    state: Any


# Given the tokens before (B,), the state, the number of the step and each row's sequence: the next tokens.
DecodeStep = Callable[[Tensor, Any, int, "list[RunningText]"], Next]


def eos_ids(special_ids: Any, limits: Limits) -> list[int]:
    """The tokens that end a text."""
    return sorted({*limits.stop_ids} | ({special_ids.eos_id} if special_ids.eos_id is not None else set()))


def banned_ids(special_ids: Any, limits: Limits, step: int, vocab_size: int) -> list[int]:
    """What may not be generated: padding, ids beyond the tokenizer's, eos of a text that is too short."""
    banned = [] if special_ids.pad_id is None else [special_ids.pad_id]
    banned += range(vocab_size if limits.vocab_size is None else limits.vocab_size, vocab_size)
    return banned + eos_ids(special_ids, limits) if step < limits.min_new_tokens else banned


def mask_banned(logits: Tensor, special_ids: Any, limits: Limits, step: int) -> Tensor:
    """Set the logits of banned ids to -inf, in place; returns the logsumexp (B,) that makes them log probabilities."""
    total = None if limits.renormalize else logsumexp(logits)
    logits[:, banned_ids(special_ids, limits, step, logits.shape[1])] = -torch.inf
    total = logsumexp(logits) if total is None else total
    if not total.isfinite().all():
        raise _not_finite()
    return total


def _not_finite() -> InputError:
    return InputError("the model's logits are not finite: its weights are damaged, or its training diverged")


def decode(
    model: Generator, inputs: Any, limits: Limits, choose: Choose, num_samples: int = 1
) -> list[list[Hypothesis]]:
    """Generate all rows together with tokens from `choose`, `num_samples` rows for each input."""

    def decode_step(tokens: Tensor, state: Any, step: int, sequences: list[RunningText]) -> Next:
        logits, state = model.step(tokens, state)
        total = mask_banned(logits, model.config.special_ids, limits, step)
        numbers, steps = [one.number for one in sequences], [len(one.tokens) for one in sequences]
        tokens = choose(logits, numbers, steps, [one.context for one in sequences])
        return Next(tokens, logits.gather(1, tokens[:, None])[:, 0] - total, state)

    return _decode(model, inputs, limits, decode_step, num_samples)


def shortlist_of(model: Any) -> ArgmaxShortlist | None:
    """The model's exact argmax shortlist; None where it has none, or has a `step` or `logits` without the mark."""
    methods = (getattr(model, name, None) for name in ("step", "logits"))
    is_shortlisted = all(getattr(method, "is_shortlisted", False) for method in methods)
    return model.argmax_shortlist() if is_shortlisted else None


def decode_unscored(model: Any, inputs: Any, limits: Limits, shortlist: ArgmaxShortlist) -> list[list[Hypothesis]]:
    """Greedy decoding with the shortlist, which gives the token with the largest logit but no log probability."""
    first, later = (
        frozenset(banned_ids(model.config.special_ids, limits, step, shortlist.vocab_size))
        for step in (0, limits.min_new_tokens)
    )

    def decode_step(tokens: Tensor, state: Any, step: int, _sequences: list[RunningText]) -> Next:
        hidden, state = model.decode_step(tokens, state)
        tokens = shortlist.argmax(hidden, first if step < limits.min_new_tokens else later)
        if (tokens < 0).any():
            raise _not_finite()
        return Next(tokens, torch.full(tokens.shape, torch.nan, device=tokens.device), state)

    return _decode(model, inputs, limits, decode_step)


def _decode(
    model: Generator, inputs: Any, limits: Limits, decode_step: DecodeStep, num_samples: int = 1
) -> list[list[Hypothesis]]:
    """The decoding loop: one token for every row and step; finished rows leave the batch."""
    ends = set(eos_ids(model.config.special_ids, limits))
    state = model.start(inputs)
    count = len(state.first)
    if num_samples > 1:
        state.reorder(torch.arange(count, device=state.first.device)[:, None].expand(-1, num_samples))
    tokens = state.first
    sequences = [RunningText.start(number, num_samples, limits) for number in range(count * num_samples)]
    running = sequences
    step = 0
    while running:
        tokens, gains, state = decode_step(tokens, state, step, running)
        kept = [
            row
            for row, (sequence, token, gain) in enumerate(zip(running, tokens.tolist(), gains.tolist(), strict=True))
            if sequence.append(token, gain, ends, limits)
        ]
        if len(kept) < len(running):
            rows = torch.tensor(kept, dtype=torch.long, device=tokens.device)
            state.reorder(rows)
            tokens = tokens[rows]
            running = [running[row] for row in kept]
        step += 1
    return ranked(sequences, num_samples)


def ranked(sequences: "list[RunningText]", num_samples: int) -> list[list[Hypothesis]]:
    """The texts of each input, the most probable first."""
    found = [Hypothesis(one.tokens, one.total, one.total, one.ended, one.sample) for one in sequences]
    by_input = [found[start : start + num_samples] for start in range(0, len(found), num_samples)]
    return [sorted(samples, key=lambda one: -one.score) for samples in by_input]


@dataclass
class RunningText:
    """One text while it is generated."""

    number: int
    row: int  # of its input
    sample: int
    context: list[int]  # the prompt and the tokens
    tokens: list[int] = field(default_factory=list)
    total: float = 0.0  # log probability
    ended: bool = False

    @classmethod
    def start(cls, number: int, num_samples: int, limits: Limits) -> "RunningText":
        row, sample = divmod(number, num_samples)
        return cls(number, row, sample, list(limits.prompts[row]) if limits.prompts else [])

    def append(self, token: int, log_probability: float, ends: set[int], limits: Limits) -> bool:
        """Add one token; returns whether the text goes on."""
        self.total += log_probability
        self.ended = token in ends
        if self.ended:
            return False
        self.tokens.append(token)
        self.context.append(token)
        if limits.on_token is not None and limits.on_token(self.row, self.sample, self.tokens):
            self.ended = True
            return False
        return len(self.tokens) < limits.max_new_tokens[self.row]
