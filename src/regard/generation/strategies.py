"""How the next token is chosen: values, handed to `generate`.

Greedy()                                the likeliest token, always; scored=False: sooner, but not how likely it was
Sample(temperature=0.8, top_p=0.9)      drawn by chance from the likelier ones; draws=10 for ten texts
Beam(4, length_penalty=0.6)             the best of several texts kept side by side
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.generation.beam import beam_search
from regard.generation.decode import Generator, Hypothesis, Limits, Strategy, shortlist_of, write, write_unscored
from regard.ops.topk import argmax, logsumexp, topk

FIRST = 1024  # tokens looked at before all are sorted: the likeliest ones mostly suffice
COLDEST, HOTTEST = 1e-30, 1e30  # temperatures that float32 can divide by; beyond them nothing changes


@dataclass(frozen=True)
class Greedy:
    """The likeliest token at each step; a repetition penalty above 1 makes what was said before less likely.

    Not `scored`: the same texts, sooner, and NaN for their log probabilities, where the model can do without them.
    """

    repetition_penalty: float = 1.0
    scored: bool = True

    def __post_init__(self) -> None:
        _check_penalty(self.repetition_penalty)

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        argmax_shortlist = shortlist_of(model) if not self.scored and self.repetition_penalty == 1.0 else None
        if argmax_shortlist is not None:
            return write_unscored(model, inputs, limits, argmax_shortlist)

        def choose(logits: Tensor, rows: list[int], said: list[list[int]]) -> Tensor:
            return argmax(discouraged(logits, said, self.repetition_penalty))

        return write(model, inputs, limits, choose)


@dataclass(frozen=True)
class Sample:
    """A token by chance: temperature < 1 sharpens, > 1 flattens; top_k, top_p and min_p leave out the unlikely tail.

    top_k keeps the k likeliest, top_p the likeliest that together make up this share, min_p those that are at least
    this share as likely as the likeliest. Draw d of input i has its own stream (seed, i, d), so its text does not
    depend on what is drawn beside it. `num_samples` texts are drawn for each input, the likeliest first.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    num_samples: int = 1

    def __post_init__(self) -> None:
        if self.temperature == math.inf:
            raise ConfigError(f"temperature is {self.temperature}, wanted a finite number")
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature is {self.temperature}, wanted more than 0; for the likeliest token use greedy"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}, wanted 1 or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, wanted a share above 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise ConfigError(f"min_p is {self.min_p}, wanted a share from 0 to 1")
        _check_penalty(self.repetition_penalty)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed is {self.seed}, wanted 0 to 2**63 - 1")
        if self.num_samples < 1:
            raise ConfigError(f"draws is {self.num_samples}, wanted 1 or more")

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        names = limits.numbers or range(len(limits.longest))
        streams = [
            np.random.Generator(np.random.Philox(key=[self.seed, name], counter=[0, 0, 0, draw]))
            for name in names
            for draw in range(self.num_samples)
        ]

        def draw(logits: Tensor, rows: list[int], said: list[list[int]]) -> Tensor:
            chances = torch.tensor([streams[row].random() for row in rows], dtype=torch.float64, device=logits.device)
            return self.pick(discouraged(logits, said, self.repetition_penalty), chances)

        return write(model, inputs, limits, draw, self.num_samples)

    def pick(self, logits: Tensor, chances: Tensor) -> Tensor:
        """Tokens (B,) at the places `chances` (B,) of the cumulated probabilities of what is left in."""
        # Less the likeliest, so that nothing above 0 is divided: however cold, it cannot overflow.
        logits = (logits - logits.amax(-1, keepdim=True)) / min(max(self.temperature, COLDEST), HOTTEST)
        if self.top_k is None and self.top_p == 1.0:
            return _at(self._enough(logits.softmax(-1)), chances)
        logits, tokens = self._sorted(logits)
        share = logits.softmax(-1) if self.top_k is not None else logits.exp()
        if self.top_p < 1.0:  # rounding lets a sum reach 1 before its last terms
            # A token stays in while the likelier ones before it do not reach top_p: the first always stays.
            share[share.cumsum(-1) - share >= self.top_p] = 0.0
        return tokens.gather(1, _at(self._enough(share), chances)[:, None])[:, 0]

    def _enough(self, share: Tensor) -> Tensor:
        """Without what is too unlikely beside the likeliest."""
        return share if self.min_p == 0 else share.masked_fill(share < self.min_p * share.amax(-1, keepdim=True), 0.0)

    def _sorted(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Log probabilities of the tokens that may be left in, the likeliest first, and which they are."""
        logits = logits - logsumexp(logits)[:, None]
        if self.top_k is not None:
            return topk(logits, min(self.top_k, logits.shape[-1]))
        if logits.shape[-1] > 4 * FIRST:
            likely, tokens = topk(logits, FIRST)
            if (likely.exp().sum(-1) >= self.top_p).all():
                return likely, tokens
        ordered = logits.sort(-1, descending=True)
        return ordered.values, ordered.indices


def _at(share: Tensor, chances: Tensor) -> Tensor:
    """Places (B,) in rows of shares (B, N) where their running sum passes the chances (B,), as parts of the whole."""
    total = share.double().cumsum(-1)
    place = torch.searchsorted(total, chances[:, None] * total[:, -1:], right=True)
    # Rounding must not carry the place beyond what is left in.
    last = share.shape[-1] - 1 - (share > 0).flip(-1).long().argmax(-1, keepdim=True)
    return place.minimum(last)[:, 0]


def discouraged(logits: Tensor, said: list[list[int]], penalty: float) -> Tensor:
    """Logits (B, V) with those of what each row said before divided by the penalty, or times it below zero."""
    if penalty == 1.0:
        return logits
    logits = logits.clone()
    for row, tokens in zip(logits, said, strict=True):
        before = torch.tensor(sorted(set(tokens)), dtype=torch.long, device=logits.device)
        found = row[before]
        row[before] = torch.where(found > 0, found / penalty, found * penalty)
    return logits


def _check_penalty(penalty: float) -> None:
    if not 0 < penalty < math.inf:
        raise ConfigError(f"repetition_penalty is {penalty}, wanted more than 0 and finite; 1 changes nothing")


@dataclass(frozen=True)
class Beam:
    """The best `width` texts side by side; ranked by log probability / length ** length_penalty, the end counted.

    A penalty of 0 ranks by probability alone and so prefers short texts; 1 ranks by the mean over the tokens.
    """

    width: int = 4
    length_penalty: float = 1.0
    n_best: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ConfigError(f"a beam of {self.width}, wanted 1 or more")
        if not 0 <= self.length_penalty <= 10:
            raise ConfigError(f"length_penalty is {self.length_penalty}, wanted 0 to 10")
        if not 1 <= self.n_best <= self.width:
            raise ConfigError(f"n_best is {self.n_best}, wanted 1 to the beam's width of {self.width}")

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        found = beam_search(model, inputs, limits, width=self.width, length_penalty=self.length_penalty)
        return [hypotheses[: self.n_best] for hypotheses in found]


def length_penalty_of(own: Strategy) -> float:
    """That of a beam in place of how a model searches by itself."""
    return own.length_penalty if isinstance(own, Beam) else Beam.length_penalty
