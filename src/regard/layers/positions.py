"""Where a word stands. Attention alone sees a set; positions make it a sequence.

A table gives one vector a position: sinusoidal (fixed, any length) or learned (as many as were trained). A join
brings it to the words: added, as in the paper, or concatenated and projected, the more general form with more
parameters that the lecture asks about. Rotary positions are no vectors: they turn queries and keys, so that a score
depends on how far apart the two stand.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import InputError


def sinusoidal(length: int, width: int, device: torch.device | str | None = None) -> Tensor:
    """(T, D): sine in even columns, cosine in odd ones, of t / 10000^(2k/D) (Vaswani 2017, 3.5)."""
    sine, cosine = _waves(length, width, device)
    table = torch.empty(length, width, device=device)
    table[:, 0::2] = sine
    table[:, 1::2] = cosine[:, : width // 2]
    return table


def sinusoidal_halves(length: int, width: int, device: torch.device | str | None = None) -> Tensor:
    """(T, D): the same columns in another order, all sines first and then all cosines, as Marian has them."""
    sine, cosine = _waves(length, width, device)
    return torch.cat([sine, cosine[:, : width // 2]], dim=1)


def _waves(length: int, width: int, device: torch.device | str | None) -> tuple[Tensor, Tensor]:
    # In double precision: in float32 the angle of position 1000 is already off in the fifth digit.
    place = torch.arange(length, dtype=torch.float64, device=device)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64, device=device) * (-math.log(10_000.0) / width))
    angle = place * rate
    return angle.sin().float(), angle.cos().float()


class PositionEncoding(nn.Module):
    """A module whose output says where a token stands: with zeros in its place, a model reads its input as a set.

    `regard check` finds the positions of a model by this class.
    """


class SinusoidalPositions(PositionEncoding):
    """A fixed table, kept for `longest` positions and computed afresh beyond."""

    def __init__(self, longest: int, width: int, *, halves: bool = False) -> None:
        super().__init__()
        self.width = width
        self.table_of = sinusoidal_halves if halves else sinusoidal
        # Not saved: it is a formula. Made on the CPU even when the model is built on the meta device.
        self.register_buffer("table", self.table_of(longest, width, "cpu"), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """The vectors (T, D) of positions start..stop-1."""
        table: Tensor = self.table  # type: ignore[assignment]
        if stop > len(table):
            table = self.table_of(stop, self.width).to(table)
        return table[start:stop]


class LearnedPositions(PositionEncoding):
    """One trained vector a position; there is none beyond `longest`."""

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(longest, width))

    def forward(self, start: int, stop: int, position_ids: Tensor | None = None) -> Tensor:
        """The vectors (T, D) of positions start..stop-1; or those (B, T, D) of `position_ids`, all below stop."""
        if stop > len(self.table) and position_ids is not None:  # columns, of which a text may have fewer
            stop = int(position_ids.max()) + 1
        if stop > len(self.table):
            raise InputError(
                f"{stop} tokens, but this model learned positions for {len(self.table)}; shorten the input"
            )
        return self.table[start:stop] if position_ids is None else F.embedding(position_ids, self.table)


class Added(nn.Module):
    """word + position."""

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        return hidden + positions


class Concatenated(nn.Module):
    """W [word; position]: adding is the case W = [I, I]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(2 * width, width, bias=False)

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        return self.project(torch.cat([hidden, positions.expand_as(hidden)], dim=-1))


class RopeScaling(NamedTuple):
    """How Llama 3 reaches beyond the lengths it was first trained on: slow waves are slowed further, by `factor`.

    Waves longer than `original_context` / `low` are slowed in full, those below `original_context` / `high` not at all.
    """

    factor: float
    low: float
    high: float
    original_context: int


class Rotary(nn.Module):
    """Pairs (i, i + K/2) of a head's numbers, turned by place · base^(-2i/K) (Su 2021)."""

    def __init__(self, head_width: int, base: float = 10_000.0, rope_scaling: RopeScaling | None = None) -> None:
        super().__init__()
        assert head_width % 2 == 0, f"a head of {head_width} numbers has no pairs"
        exponents = torch.arange(0, head_width, 2, device="cpu").float() / head_width
        rates = 1.0 / base**exponents  # (K/2,)
        # Not saved: it is a formula. Made on the CPU even when the model is built on the meta device.
        self.register_buffer(
            "rates", rates if rope_scaling is None else stretched(rates, rope_scaling), persistent=False
        )

    def forward(self, position_ids: Tensor) -> "Angles":
        """The angles of places (T,) or (B, T), for all heads of all layers."""
        rates: Tensor = self.rates  # type: ignore[assignment]
        angles = position_ids[..., None].float() * rates  # (…, T, K/2)
        angles = angles.unsqueeze(-3)  # one for all heads
        cosine, sine = angles.cos(), angles.sin()
        return Angles(torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1))


class Angles(NamedTuple):
    """cos, and sin with the sign of its half: (…, 1, T, K) each."""

    cosine: Tensor
    sine: Tensor

    def turn(self, heads: Tensor) -> Tensor:
        """Heads (B, H, T, K), each pair turned by the angle of its place."""
        return heads * self.cosine + heads.roll(heads.shape[-1] // 2, dims=-1) * self.sine


def stretched(rates: Tensor, rope_scaling: RopeScaling) -> Tensor:
    """Rates of turning with the slow ones slowed; between the two bounds, by straight mixing."""
    turns = rope_scaling.original_context * rates / (2 * math.pi)  # within the lengths first trained on
    share = ((turns - rope_scaling.low) / (rope_scaling.high - rope_scaling.low)).clamp(0, 1)
    return rates * (share + (1 - share) / rope_scaling.factor)
