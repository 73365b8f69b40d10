"""Positions: attention alone sees a set of tokens; positions make it a sequence.

A position encoding has one vector a position: sinusoidal (fixed, any length) or learned (as many as were trained). The
vectors are added to the token embeddings, as in the paper, or concatenated with them and projected, the more general
form with more parameters that the lecture asks about. Rotary position embeddings (RoPE) are not vectors: they rotate
queries and keys, so that a score depends on the distance between the two.
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
    vectors = torch.empty(length, width, device=device)
    vectors[:, 0::2] = sine
    vectors[:, 1::2] = cosine[:, : width // 2]
    return vectors


def sinusoidal_halves(length: int, width: int, device: torch.device | str | None = None) -> Tensor:
    """(T, D): the same columns in another order, first all sines and then all cosines, as Marian has them."""
    sine, cosine = _waves(length, width, device)
    return torch.cat([sine, cosine[:, : width // 2]], dim=1)


def _waves(length: int, width: int, device: torch.device | str | None) -> tuple[Tensor, Tensor]:
    # In double precision: in float32 the angle of position 1000 is already wrong in the fifth digit.
    position = torch.arange(length, dtype=torch.float64, device=device)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64, device=device) * (-math.log(10_000.0) / width))
    angle = position * rate
    return angle.sin().float(), angle.cos().float()


class PositionEncoding(nn.Module):
    """A module whose output says where a token stands: with zeros in its place, a model reads its input as a set.

    `regard check` finds the positions of a model by this class.
    """


class SinusoidalPositions(PositionEncoding):
    """Fixed vectors, stored for `max_positions` and computed again for a longer input."""

    def __init__(self, max_positions: int, width: int, *, halves: bool = False) -> None:
        super().__init__()
        self.width = width
        self.compute = sinusoidal_halves if halves else sinusoidal
        # Not saved: it is a formula. Computed on the CPU even when the model is built on the meta device.
        self.register_buffer("weight", self.compute(max_positions, width, "cpu"), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """The vectors (T, D) of positions start..stop-1."""
        weight: Tensor = self.weight  # type: ignore[assignment]
        if stop > len(weight):
            weight = self.compute(stop, self.width).to(weight)
        return weight[start:stop]


class LearnedPositions(PositionEncoding):
    """One trained vector for each of `max_positions`."""

    def __init__(self, max_positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, width))

    def forward(self, start: int, stop: int, position_ids: Tensor | None = None) -> Tensor:
        """The vectors (T, D) of positions start..stop-1; or those (B, T, D) of `position_ids`, all below stop."""
        if stop > len(self.weight) and position_ids is not None:  # columns; with left padding a text has fewer tokens
            stop = int(position_ids.max()) + 1
        if stop > len(self.weight):
            raise InputError(
                f"{stop} tokens, but this model learned positions for {len(self.weight)}; shorten the input"
            )
        return self.weight[start:stop] if position_ids is None else F.embedding(position_ids, self.weight)


class Added(nn.Module):
    """embedding + position."""

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        return hidden + positions


class Concatenated(nn.Module):
    """W [embedding; position]: addition is the case W = [I, I]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(2 * width, width, bias=False)

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        return self.project(torch.cat([hidden, positions.expand_as(hidden)], dim=-1))


class RopeScaling(NamedTuple):
    """How Llama 3 extends its context: low frequencies are divided by `factor`.

    Wavelengths above `original_context` / `low_freq_factor` are scaled in full, those below `original_context` /
    `high_freq_factor` not at all.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int


class Rotary(nn.Module):
    """Rotary position embedding (Su 2021): pairs (i, i + K/2) of a head, rotated by position · theta^(-2i/K)."""

    def __init__(self, head_width: int, theta: float = 10_000.0, rope_scaling: RopeScaling | None = None) -> None:
        super().__init__()
        assert head_width % 2 == 0, f"a head of {head_width} numbers does not divide into pairs"
        exponents = torch.arange(0, head_width, 2, device="cpu").float() / head_width
        frequencies = 1.0 / theta**exponents  # (K/2,)
        if rope_scaling is not None:
            frequencies = scale_frequencies(frequencies, rope_scaling)
        # Not saved: it is a formula. Computed on the CPU even when the model is built on the meta device.
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, position_ids: Tensor) -> "Angles":
        """The angles of positions (T,) or (B, T), for all heads of all layers."""
        frequencies: Tensor = self.frequencies  # type: ignore[assignment]
        angles = position_ids[..., None].float() * frequencies  # (…, T, K/2)
        angles = angles.unsqueeze(-3)  # one for all heads
        cosine, sine = angles.cos(), angles.sin()
        return Angles(torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1))


class Angles(NamedTuple):
    """cos, and sin with the sign of its half: (…, 1, T, K) each."""

    cosine: Tensor
    sine: Tensor

    def apply_rotary(self, heads: Tensor) -> Tensor:
        """Heads (B, H, T, K), each pair rotated by the angle of its position."""
        return heads * self.cosine + heads.roll(heads.shape[-1] // 2, dims=-1) * self.sine


def scale_frequencies(frequencies: Tensor, rope_scaling: RopeScaling) -> Tensor:
    """Low frequencies divided by the factor; between the two bounds, interpolated."""
    low, high = rope_scaling.low_freq_factor, rope_scaling.high_freq_factor
    turns = rope_scaling.original_context * frequencies / (2 * math.pi)  # within the original context
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (share + (1 - share) / rope_scaling.factor)
