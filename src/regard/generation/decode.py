"""The decoding protocol, and the loop that writes one token a row at a time.

A generator offers `state = model.start(inputs)` and `logits, state = model.step(tokens, state)`; its state offers
`first`, the tokens to step first, and `reorder(rows)`. Nothing else is asked, so every strategy serves every model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.generation.ranking import log_total


class State(Protocol):
    """What a model carries from step to step."""

    first: Tensor

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was. Rows (N,), or (sentences, beams) whose lines share an input."""


class Generator(Protocol):
    """A model that can write."""

    config: Any  # its `symbols` name the end, and padding, which is never written

    def start(self, inputs: Any) -> Any: ...

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]: ...


@dataclass(frozen=True)
class Limits:
    """How much may be written: at most `longest[i]` tokens in row i, the end not counted; at least `shortest`.

    `numbers[i]` is what the caller calls row i, where rows were sorted or split into batches; chance goes by it. A
    text that reaches its limit is cut off there; a beam ranks it as if it had ended for nothing where it is `closed`.
    Probabilities are the model's, which gives padding its share, or, `renormalized`, those of what may be written.
    """

    longest: Sequence[int]
    shortest: int = 0
    numbers: Sequence[int] | None = None
    closed: bool = False
    renormalized: bool = False


@dataclass(frozen=True)
class Hypothesis:
    """One text a strategy found: its tokens without the end symbol, and what the model thinks of it."""

    tokens: list[int]
    log_probability: float  # of all tokens, and of the end where it was reached
    score: float  # what the strategy ranks by
    ended: bool  # False: the limit cut it off


class Strategy(Protocol):
    """A way to choose; a value such as `Greedy()` or `Beam(4)`."""

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        """For each input its hypotheses, the best first."""


@torch.inference_mode()
def generate(model: Generator, inputs: Any, strategy: Strategy, limits: Limits) -> list[list[Hypothesis]]:
    """For each row of the inputs the hypotheses of the strategy, the best first."""
    return strategy.search(model, inputs, limits)


# Given logits (B, V) and, for each row, the number of its input: the next tokens (B,).
Choice = Callable[[Tensor, list[int]], Tensor]


def allow(logits: Tensor, symbols: Any, limits: Limits, step: int) -> Tensor:
    """Give what may not be written -inf, in place: padding, and the end of a text too short; the log of the total."""
    total = None if limits.renormalized else log_total(logits)
    logits[:, symbols.padding] = -torch.inf
    if step < limits.shortest:
        logits[:, symbols.end] = -torch.inf
    return log_total(logits) if total is None else total


def write(model: Generator, inputs: Any, limits: Limits, choose: Choice) -> list[list[Hypothesis]]:
    """Write all rows side by side, a token each a step; a row that is done leaves the batch."""
    symbols = model.config.symbols
    state = model.start(inputs)
    tokens = state.first
    texts: list[list[int]] = [[] for _ in tokens]
    totals = [0.0] * len(tokens)
    ended = [False] * len(tokens)
    numbers = list(range(len(tokens)))  # which input each row of the batch belongs to
    step = 0
    while numbers:
        logits, state = model.step(tokens, state)
        total = allow(logits, symbols, limits, step)
        tokens = choose(logits, numbers)
        gains = logits.gather(1, tokens[:, None])[:, 0] - total
        staying = []
        for row, (number, token, gain) in enumerate(zip(numbers, tokens.tolist(), gains.tolist(), strict=True)):
            totals[number] += gain
            ended[number] = token == symbols.end
            if not ended[number]:
                texts[number].append(token)
                if len(texts[number]) < limits.longest[number]:
                    staying.append(row)
        if len(staying) < len(numbers):
            rows = torch.tensor(staying, dtype=torch.long, device=tokens.device)
            state.reorder(rows)
            tokens = tokens[rows]
            numbers = [numbers[row] for row in staying]
        step += 1
    return [[Hypothesis(*found)] for found in zip(texts, totals, totals, ended, strict=True)]
