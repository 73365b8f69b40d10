"""How the next token is chosen: values, handed to `generate`.

Greedy()                                the likeliest token, always
Sample(temperature=0.8, top_p=0.9)      drawn by chance from the likelier ones
Beam(4, length_penalty=0.6)             the best of several texts kept side by side
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.generation.beam import beam_search
from regard.generation.decode import Generator, Hypothesis, Limits, write
from regard.generation.ranking import likeliest


@dataclass(frozen=True)
class Greedy:
    """The likeliest token at each step."""

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        return write(model, inputs, limits, lambda logits, numbers: likeliest(logits))


@dataclass(frozen=True)
class Sample:
    """A token by chance: temperature < 1 sharpens, > 1 flattens; top_k and top_p leave out the unlikely tail.

    Input i draws from its own stream (seed, i), so its text does not depend on the inputs beside it.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature is {self.temperature}, wanted more than 0; for the likeliest token use greedy"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}, wanted 1 or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, wanted a share above 0 and at most 1")
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed is {self.seed}, wanted 0 to 2**63 - 1")

    def search(self, model: Generator, inputs: Any, limits: Limits) -> list[list[Hypothesis]]:
        names = limits.numbers or range(len(limits.longest))
        streams = [np.random.Generator(np.random.Philox(key=[self.seed, name])) for name in names]

        def draw(logits: Tensor, numbers: list[int]) -> Tensor:
            chances = torch.tensor([streams[number].random() for number in numbers], device=logits.device)
            return self.pick(logits, chances)

        return write(model, inputs, limits, draw)

    def pick(self, logits: Tensor, chances: Tensor) -> Tensor:
        """Tokens (B,) at the places `chances` (B,) of the cumulated probabilities of what is left in."""
        logits, tokens = (logits / self.temperature).sort(-1, descending=True)
        share = logits.softmax(-1)
        if self.top_k is not None:
            share[:, self.top_k :] = 0.0
        # A token stays in while the likelier ones before it do not reach top_p: the first always stays.
        share[share.cumsum(-1) - share >= self.top_p] = 0.0
        total = share.cumsum(-1)
        place = torch.searchsorted(total, chances[:, None].to(total) * total[:, -1:], right=True)
        last = (share > 0).sum(-1, keepdim=True) - 1  # rounding must not carry the place beyond what is left in
        return tokens.gather(1, place.minimum(last))[:, 0]


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
