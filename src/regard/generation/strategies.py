"""Decoding strategies: values handed to `generate`.

Greedy()                                the most probable token; scored=False is faster and gives no log probability
Sample(temperature=0.8, top_p=0.9)      random sampling (top-k, nucleus, min-p); num_samples=10 for ten texts
Beam(4, length_penalty=0.6)             beam search
Greedy(draft=PromptLookup())            the same text, sooner
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.generation.beam import beam_search
from regard.generation.decode import Generator, Hypothesis, Limits, Strategy, decode, decode_unscored, shortlist_of
from regard.generation.speculative import Draft, decode_drafted
from regard.layers.sampling import apply_temperature, cut_tail
from regard.ops.topk import argmax

MAX_TEXTS = 100_000  # samples or beams of one input, each a row of the batch


@dataclass(frozen=True)
class Greedy:
    """The most probable token at each step; a repetition penalty above 1 makes earlier tokens less probable.

    scored=False gives the same texts faster where the model has an argmax shortlist, with NaN for log probabilities.
    A draft gives the same texts in fewer steps (generation/speculative.py).
    """

    repetition_penalty: float = 1.0
    scored: bool = True
    draft: Draft | None = None

    def __post_init__(self) -> None:
        _check_penalty(self.repetition_penalty)

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        is_plain = self.repetition_penalty == 1.0 and self.draft is None
        shortlist = shortlist_of(model) if not self.scored and is_plain else None
        if shortlist is not None:
            return decode_unscored(model, inputs, limits, shortlist)

        def choose(logits: Tensor, _rows: list[int], _steps: list[int], contexts: list[list[int]]) -> Tensor:
            return argmax(penalize_repetition(logits, contexts, self.repetition_penalty))

        return (
            decode_drafted(model, self.draft, inputs, limits, choose)
            if self.draft
            else decode(model, inputs, limits, choose)
        )


@dataclass(frozen=True)
class Sample:
    """A random token: temperature < 1 sharpens the distribution, > 1 flattens it; top_k, top_p and min_p cut its tail.

    top_k keeps the k most probable tokens, top_p (nucleus sampling) the most probable that together reach this
    probability, min_p those with at least this share of the highest probability. Sample s of input i has its own random
    stream (seed, i, s), so its text does not depend on the rest of the batch. Each input gets `num_samples` texts, the
    most probable first. A draft gives the same texts in fewer steps (generation/speculative.py).
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    num_samples: int = 1
    draft: Draft | None = None

    def __post_init__(self) -> None:
        if self.temperature == math.inf:
            raise ConfigError(f"temperature is {self.temperature}, wanted a finite number")
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature is {self.temperature}, wanted more than 0; for the most probable token use greedy"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}, wanted 1 or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, wanted a probability above 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise ConfigError(f"min_p is {self.min_p}, wanted a share from 0 to 1")
        _check_penalty(self.repetition_penalty)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed is {self.seed}, wanted 0 to 2**63 - 1")
        if not 1 <= self.num_samples <= MAX_TEXTS:
            raise ConfigError(f"num_samples is {self.num_samples}, wanted 1 to {MAX_TEXTS:,}")

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        row_ids = limits.row_ids or range(len(limits.max_new_tokens))
        uniforms = [
            _Uniforms(np.random.Philox(key=[self.seed, row_id], counter=[0, 0, 0, sample]))
            for row_id in row_ids
            for sample in range(self.num_samples)
        ]

        def choose(logits: Tensor, rows: list[int], steps: list[int], contexts: list[list[int]]) -> Tensor:
            numbers = [uniforms[row].at(step) for row, step in zip(rows, steps, strict=True)]
            uniform = torch.tensor(numbers, dtype=torch.float64, device=logits.device)
            return self.pick(penalize_repetition(logits, contexts, self.repetition_penalty), uniform)

        if self.draft:
            return decode_drafted(model, self.draft, inputs, limits, choose, self.num_samples)
        return decode(model, inputs, limits, choose, self.num_samples)

    def pick(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Tokens (B,) by inverse transform sampling: where the cumulative probabilities pass `uniform` (B,)."""
        logits = apply_temperature(logits, self.temperature)
        if self.top_k is None and self.top_p == 1.0:
            return _inverse_transform(self._apply_min_p(logits.softmax(-1)), uniform)
        probabilities, tokens = cut_tail(logits, self.top_k, self.top_p)
        return tokens.gather(1, _inverse_transform(self._apply_min_p(probabilities), uniform)[:, None])[:, 0]

    def _apply_min_p(self, probabilities: Tensor) -> Tensor:
        if self.min_p == 0:
            return probabilities
        return probabilities.masked_fill(probabilities < self.min_p * probabilities.amax(-1, keepdim=True), 0.0)


class _Uniforms:
    """A stream of random numbers from 0 to 1, one a step; a draft looks some of them up before their step."""

    def __init__(self, source: np.random.BitGenerator) -> None:
        self._stream = np.random.Generator(source)
        self._drawn: list[float] = []

    def at(self, step: int) -> float:
        while len(self._drawn) <= step:
            self._drawn.append(self._stream.random())
        return self._drawn[step]


def _inverse_transform(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Indices (B,) into rows (B, N) where their running sum passes `uniform` (B,), as a share of the row's sum."""
    total = probabilities.double().cumsum(-1)
    index = torch.searchsorted(total, uniform[:, None] * total[:, -1:], right=True)
    # Rounding must not carry the index beyond the last token that is kept.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).long().argmax(-1, keepdim=True)
    return index.minimum(last)[:, 0]


def penalize_repetition(logits: Tensor, contexts: list[list[int]], penalty: float) -> Tensor:
    """Logits (B, V) with those of tokens in each row's context divided by the penalty, or multiplied if negative."""
    if penalty == 1.0:
        return logits
    logits = logits.clone()
    for row, tokens in zip(logits, contexts, strict=True):
        ids = torch.tensor(sorted(set(tokens)), dtype=torch.long, device=logits.device)
        found = row[ids]
        row[ids] = torch.where(found > 0, found / penalty, found * penalty)
    return logits


def _check_penalty(penalty: float) -> None:
    if not 0 < penalty < math.inf:
        raise ConfigError(f"repetition_penalty is {penalty}, wanted more than 0 and finite; 1 changes nothing")


@dataclass(frozen=True)
class Beam:
    """Beam search, ranked by log probability / length ** length_penalty, eos counted.

    A penalty of 0 ranks by probability alone and so prefers short texts; 1 ranks by the mean over the tokens.
    """

    num_beams: int = 4
    length_penalty: float = 1.0
    num_return: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.num_beams <= MAX_TEXTS:
            raise ConfigError(f"num_beams is {self.num_beams}, wanted 1 to {MAX_TEXTS:,}")
        if not 0 <= self.length_penalty <= 10:
            raise ConfigError(f"length_penalty is {self.length_penalty}, wanted 0 to 10")
        if not 1 <= self.num_return <= self.num_beams:
            raise ConfigError(f"num_return is {self.num_return}, wanted 1 to num_beams, which is {self.num_beams}")

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        found = beam_search(model, inputs, limits, num_beams=self.num_beams, length_penalty=self.length_penalty)
        return [hypotheses[: self.num_return] for hypotheses in found]


def length_penalty_of(own: Strategy) -> float:
    """The length penalty of a model's own strategy if that is beam search, else the default."""
    return own.length_penalty if isinstance(own, Beam) else Beam.length_penalty
