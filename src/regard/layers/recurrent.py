"""Recurrence: s_t = g(x_t, s_{t-1}), one word after the other.

What a step takes from its word, W x_t + b, does not wait for the step before it: `input` computes it for all words at
once, and `step` takes it as given. A state is (B, P, D): the GRU's one part, the LSTM's two (what it shows, what it
keeps). Rows are padded at the end, so that no state of a word has seen padding; reading backwards begins at each row's
own last word.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.layers.linear import Linear
from regard.layers.tap import Tap
from regard.ops.gru_scan import GRUScan

CellName = Literal["gru", "lstm"]


class Recurrence(nn.Module, ABC):
    """What both cells share: the two maps, and the loop over the words."""

    parts: int
    gates: int

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = Linear(inputs, self.gates * width)
        self.recurrent = Linear(width, self.gates * width)
        if self.input.weight.is_meta:  # weights come from elsewhere
            return
        for map_ in (self.input, self.recurrent):
            nn.init.zeros_(map_.bias)
            for gate in map_.weight.data.split(width):  # each gate is a matrix of its own
                (nn.init.xavier_uniform_ if map_ is self.input else nn.init.orthogonal_)(gate)

    def forward(self, hidden: Tensor, state: Tensor) -> Tensor:
        """The states (B, T, P, D) after each of the words (B, T, inputs), from a state (B, P, D) on."""
        return self.run(self.input(hidden.transpose(0, 1)), state).transpose(0, 1)

    def run(self, given: Tensor, state: Tensor) -> Tensor:
        """The states (T, B, P, D) from what each word gives (T, B, gates · D)."""
        states = []
        for word in given:
            state = self.step(word, state)
            states.append(state)
        return torch.stack(states)

    @abstractmethod
    def step(self, given: Tensor, state: Tensor) -> Tensor:
        """The next state, from what the word gives (B, gates · D)."""


class GRU(Recurrence):
    """A gated recurrent unit (Cho 2014), with the reset gate behind the matrix, as torch's has it."""

    parts = 1
    gates = 3

    def run(self, given: Tensor, state: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return super().run(given, state)
        return GRUScan.apply(given, state.squeeze(1), self.recurrent.weight, self.recurrent.bias).unsqueeze(2)

    def step(self, given: Tensor, state: Tensor) -> Tensor:
        state = state.squeeze(1)
        both, new = given.split([2 * self.width, self.width], dim=-1)
        recurrent_both, recurrent_new = self.recurrent(state).split([2 * self.width, self.width], dim=-1)
        reset, keep = (both + recurrent_both).sigmoid().chunk(2, dim=-1)
        new = torch.addcmul(new, reset, recurrent_new).tanh()
        return torch.lerp(new, state, keep).unsqueeze(1)  # (1 - keep) new + keep old


class LSTM(Recurrence):
    """A long short-term memory (Hochreiter & Schmidhuber 1997; with the forget gate of Gers 2000, open at first)."""

    parts = 2
    gates = 4

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        if not self.input.weight.is_meta:
            nn.init.ones_(self.input.bias.data[width : 2 * width])

    def step(self, given: Tensor, state: Tensor) -> Tensor:
        shown, kept = state.unbind(1)
        enter, forget, new, show = (given + self.recurrent(shown)).chunk(4, dim=-1)
        kept = torch.addcmul(forget.sigmoid() * kept, enter.sigmoid(), new.tanh())
        return torch.stack([show.sigmoid() * kept.tanh(), kept], dim=1)


CELLS: dict[CellName, type[Recurrence]] = {"gru": GRU, "lstm": LSTM}


def shown(states: Tensor) -> Tensor:
    """What the layer above, attention and the output see of states (…, P, D): the first part."""
    return states.squeeze(-2) if states.shape[-2] == 1 else states.select(-2, 0)


class Reader(nn.Module):
    """One recurrent layer over whole sentences, forwards, or both ways with half the width each."""

    def __init__(self, cell: CellName, inputs: int, width: int, *, bidirectional: bool) -> None:
        super().__init__()
        each = width // 2 if bidirectional else width
        self.forwards = CELLS[cell](inputs, each)
        self.backwards = CELLS[cell](inputs, each) if bidirectional else None
        self.hidden = Tap()

    def forward(self, hidden: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The words (B, S, D) in their context, and the state (B, P, D) after each row's last word.

        Read backwards, the last word is the first.
        """
        begin = hidden.new_zeros(len(hidden), self.forwards.parts, self.forwards.width)
        states = self.forwards(hidden, begin)
        if self.backwards is None:
            return self.hidden(shown(states)), last_of(states, lengths)
        order = backward_order(lengths, hidden.shape[1])
        back = self.backwards(Turned.apply(hidden, order), begin)
        both = torch.cat([shown(states), Turned.apply(shown(back), order)], dim=-1)
        return self.hidden(both), torch.cat([last_of(states, lengths), last_of(back, lengths)], dim=-1)


def last_of(states: Tensor, lengths: Tensor) -> Tensor:
    """The states (B, P, D) of each row's last word, from all of them (B, S, P, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states.flatten(0, 1).index_select(0, rows * states.shape[1] + lengths - 1)


def backward_order(lengths: Tensor, longest: int) -> Tensor:
    """(B, S): the places of each row's words from its last to its first; padding stays where it is."""
    position_ids = torch.arange(longest, device=lengths.device)
    return torch.where(position_ids < lengths[:, None], lengths[:, None] - 1 - position_ids, position_ids)


class Turned(torch.autograd.Function):
    """Words (B, S, D) in another order (B, S) that turned twice is the first one: the way back is the way there."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, order: Tensor) -> Tensor:
        rows = torch.arange(len(order), device=order.device)[:, None] * order.shape[1]
        ctx.save_for_backward(index := (rows + order).flatten())
        return hidden.flatten(0, 1).index_select(0, index).view_as(hidden)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return gradient.flatten(0, 1).index_select(0, index).view_as(gradient), None
