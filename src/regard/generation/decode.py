"""The decoding protocol, and the loop that writes one token a row at a time.

A generator offers `state = model.start(inputs)` and `logits, state = model.step(tokens, state)`; its state offers
`first`, the tokens to step first, and `reorder(rows)`. Nothing else is asked, so every strategy serves every model.

The output projection of a step is a quarter of a translator's work and a third of a small GPT's. A generator that
offers `hidden, state = model.decode_step(tokens, state)` and `model.argmax_shortlist()` lets greedy decoding without
scores skip most of it.
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
        """Row i becomes what row rows[i] was. Rows (N,), or (sentences, beams) whose lines share an input."""


class Generator(Protocol):
    """A model that can write."""

    config: Any  # its `special_ids` name the end, and padding, which is never written; None where there is none

    def start(self, inputs: Any) -> Any: ...

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]: ...


Watch = Callable[[int, int, list[int]], bool]


@dataclass(frozen=True)
class Limits:
    """How much may be written: at most `longest[i]` tokens in row i, the end not counted; at least `shortest`.

    `numbers[i]` is what the caller calls row i, where rows were sorted or split into batches; chance goes by it. A
    text that reaches its limit is cut off there; a beam ranks it as if it had ended for nothing where it is `closed`.
    Only ids below `hidden` are written: a table may have more rows than its tokenizer words. Probabilities are the
    model's, which gives padding its share, or, `renormalized`, those of what may be written.

    `ends` are tokens that end a text beside the model's own end. `prompts[i]` is what stands before the text of row i.
    `watch(i, d, tokens)` sees the tokens of draw d of row i so far, after each; where it answers True the text ends.
    """

    longest: Sequence[int]
    shortest: int = 0
    numbers: Sequence[int] | None = None
    closed: bool = False
    renormalized: bool = False
    ends: Collection[int] = ()
    prompts: Sequence[Sequence[int]] | None = None
    watch: Watch | None = None
    vocab_size: int | None = None


@dataclass(frozen=True)
class Hypothesis:
    """One text a strategy found: its tokens without the end symbol, and what the model thinks of it."""

    tokens: list[int]
    log_probability: float  # of all tokens, and of the end where it was reached; NaN: it was not asked for
    score: float  # what the strategy ranks by; the same
    ended: bool  # False: the limit cut it off
    draw: int = 0  # which of several drawn for one input


class Strategy(Protocol):
    """A way to choose; a value such as `Greedy()` or `Beam(4)`."""

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        """For each input its hypotheses, the best first."""


@torch.inference_mode()
def generate(model: Generator, inputs: Any, strategy: Strategy, limits: Limits) -> list[list[Hypothesis]]:
    """For each row of the inputs the hypotheses of the strategy, the best first."""
    return strategy.search(model, inputs, limits)


# Given logits (B, V), the row each belongs to, and all that was said in each, prompts too: the next tokens (B,).
Choice = Callable[[Tensor, list[int], list[list[int]]], Tensor]


class Next(NamedTuple):
    """One more token for every row."""

    tokens: Tensor  # (B,)
    gains: Tensor  # (B,) their log probabilities, or NaN
    state: Any


# Given the tokens before (B,), the state, the number of the step and the text of each row: what comes next.
Advance = Callable[[Tensor, Any, int, "list[_Text]"], Next]


def ends_of(special_ids: Any, limits: Limits) -> list[int]:
    """The tokens that end a text."""
    return sorted({*limits.ends} | ({special_ids.eos_id} if special_ids.eos_id is not None else set()))


def banned(special_ids: Any, limits: Limits, step: int, vocab_size: int) -> list[int]:
    """What may not be written: padding, no words, the end of a text too short."""
    found = [] if special_ids.pad_id is None else [special_ids.pad_id]
    found += range(vocab_size if limits.vocab_size is None else limits.vocab_size, vocab_size)
    return found + ends_of(special_ids, limits) if step < limits.shortest else found


def allow(logits: Tensor, special_ids: Any, limits: Limits, step: int) -> Tensor:
    """Give what may not be written -inf, in place; the log total."""
    total = None if limits.renormalized else logsumexp(logits)
    logits[:, banned(special_ids, limits, step, logits.shape[1])] = -torch.inf
    total = logsumexp(logits) if total is None else total
    if not total.isfinite().all():
        raise _not_finite()
    return total


def _not_finite() -> InputError:
    return InputError("the model's logits are not finite: its weights are damaged, or its training diverged")


def write(
    model: Generator, inputs: Any, limits: Limits, choose: Choice, num_samples: int = 1
) -> list[list[Hypothesis]]:
    """Write all rows side by side, as `choose` chooses, `num_samples` rows for each input."""

    def decode_step(tokens: Tensor, state: Any, step: int, texts: list[_Text]) -> Next:
        logits, state = model.step(tokens, state)
        total = allow(logits, model.config.special_ids, limits, step)
        tokens = choose(logits, [text.number for text in texts], [text.said for text in texts])
        return Next(tokens, logits.gather(1, tokens[:, None])[:, 0] - total, state)

    return _write(model, inputs, limits, decode_step, num_samples)


def shortlist_of(model: Any) -> ArgmaxShortlist | None:
    """The model's exact argmax shortlist; None where it has none, or computes its logits in another way."""
    methods = (getattr(model, name, None) for name in ("step", "logits"))
    is_shortlisted = all(getattr(method, "is_shortlisted", False) for method in methods)
    return model.argmax_shortlist() if is_shortlisted else None


def write_unscored(
    model: Any, inputs: Any, limits: Limits, argmax_shortlist: ArgmaxShortlist
) -> list[list[Hypothesis]]:
    """Write the likeliest token always, as the model's screen finds it; nobody learns how likely it was."""
    first, later = (
        frozenset(banned(model.config.special_ids, limits, step, argmax_shortlist.vocab_size))
        for step in (0, limits.shortest)
    )

    def decode_step(tokens: Tensor, state: Any, step: int, _texts: list[_Text]) -> Next:
        hidden, state = model.decode_step(tokens, state)
        tokens = argmax_shortlist.argmax(hidden, first if step < limits.shortest else later)
        if (tokens < 0).any():
            raise _not_finite()
        return Next(tokens, torch.full(tokens.shape, torch.nan), state)

    return _write(model, inputs, limits, decode_step)


def _write(
    model: Generator, inputs: Any, limits: Limits, decode_step: Advance, num_samples: int = 1
) -> list[list[Hypothesis]]:
    """Write all rows side by side, a token each a step; a row that is done leaves."""
    ends = set(ends_of(model.config.special_ids, limits))
    state = model.start(inputs)
    count = len(state.first)
    if num_samples > 1:
        state.reorder(torch.arange(count, device=state.first.device)[:, None].expand(-1, num_samples))
    tokens = state.first
    texts = [
        _Text(
            number,
            number // num_samples,
            number % num_samples,
            list(limits.prompts[number // num_samples]) if limits.prompts else [],
        )
        for number in range(count * num_samples)
    ]
    rows = texts  # those that are still written
    step = 0
    while rows:
        tokens, gains, state = decode_step(tokens, state, step, rows)
        staying = [
            place
            for place, (text, token, gain) in enumerate(zip(rows, tokens.tolist(), gains.tolist(), strict=True))
            if text.goes_on(token, gain, ends, limits)
        ]
        if len(staying) < len(rows):
            kept = torch.tensor(staying, dtype=torch.long, device=tokens.device)
            state.reorder(kept)
            tokens = tokens[kept]
            rows = [rows[place] for place in staying]
        step += 1
    found = [Hypothesis(text.tokens, text.total, text.total, text.ended, text.draw) for text in texts]
    several = [found[start : start + num_samples] for start in range(0, len(found), num_samples)]
    return [sorted(each, key=lambda one: -one.score) for each in several]


@dataclass
class _Text:
    """One text as it is written."""

    number: int
    row: int  # the input it is written for
    draw: int
    said: list[int]  # the prompt and the text
    tokens: list[int] = field(default_factory=list)
    total: float = 0.0
    ended: bool = False

    def goes_on(self, token: int, gain: float, ends: set[int], limits: Limits) -> bool:
        """Take one more token; whether there may be another."""
        self.total += gain
        self.ended = token in ends
        if self.ended:
            return False
        self.tokens.append(token)
        self.said.append(token)
        if limits.watch is not None and limits.watch(self.row, self.draw, self.tokens):
            self.ended = True
            return False
        return len(self.tokens) < limits.longest[self.row]
