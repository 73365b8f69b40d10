"""Recurrence: s_t = g(x_t, s_{t-1}), one token after the other.

The input part of a step, W x_t + b, does not depend on the step before it: `input` computes it for all tokens at once,
and `step` takes it as given. A state is (B, P, D): the GRU has one part, the LSTM two (its output and its cell state).
Rows are padded at the end, so that no state of a token has seen padding; the backward direction starts at the last
token of each row.

For training, the loop of a GRU is one differentiable function (ops/gru_scan.py).
"""

from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.layers.linear import Linear
from regard.layers.tap import Tap, is_watching
from regard.ops.gru_scan import GRUScan
from regard.ops.precision import in_float32

CellName = Literal["gru", "lstm", "elman"]


class Recurrence(nn.Module, ABC):
    """What the cells share: the two matrices, and the loop over the tokens."""

    parts: int
    gates: int

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = Linear(inputs, self.gates * width)
        self.recurrent = Linear(width, self.gates * width)
        if self.input.weight.is_meta:  # weights will be loaded
            return
        for map_ in (self.input, self.recurrent):
            nn.init.zeros_(map_.bias)
            for gate in map_.weight.data.split(width):  # each gate is a matrix of its own
                (nn.init.xavier_uniform_ if map_ is self.input else nn.init.orthogonal_)(gate)

    def forward(self, hidden: Tensor, state: Tensor) -> Tensor:
        """The states (B, T, P, D) after each of the inputs (B, T, inputs), starting from a state (B, P, D)."""
        return self.run(self.input(hidden.transpose(0, 1)), state).transpose(0, 1)

    @in_float32
    def run(self, given: Tensor, state: Tensor) -> Tensor:
        """The states (T, B, P, D) from the projected inputs (T, B, gates · D)."""
        states = []
        for step_input in given:
            state = self.step(step_input, state)
            states.append(state)
        return torch.stack(states)

    @property
    def is_watched(self) -> bool:
        return is_watching() and any(isinstance(tap, Tap) and tap.watched for tap in self.children())

    @abstractmethod
    def step(self, given: Tensor, state: Tensor) -> Tensor:
        """The next state, from the projected input (B, gates · D)."""


class GRU(Recurrence):
    """A gated recurrent unit (Cho 2014), with the reset gate after the matrix, as in torch."""

    parts = 1
    gates = 3

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        self.reset_gate, self.update_gate, self.candidate = Tap(), Tap(), Tap()  # (B, D) a token

    @in_float32
    def run(self, given: Tensor, state: Tensor) -> Tensor:
        if not torch.is_grad_enabled() or self.is_watched:
            return super().run(given, state)
        return GRUScan.apply(given, state.squeeze(1), self.recurrent.weight, self.recurrent.bias).unsqueeze(2)

    @in_float32
    def step(self, given: Tensor, state: Tensor) -> Tensor:
        state = state.squeeze(1)
        both, new = given.split([2 * self.width, self.width], dim=-1)
        recurrent_both, recurrent_new = self.recurrent(state).split([2 * self.width, self.width], dim=-1)
        reset, keep = (both + recurrent_both).sigmoid().chunk(2, dim=-1)
        if is_watching():
            reset, keep = self.reset_gate(reset), self.update_gate(keep)
        new = torch.addcmul(new, reset, recurrent_new).tanh()
        if is_watching():
            new = self.candidate(new)
        return torch.lerp(new, state, keep).unsqueeze(1)  # (1 - keep) new + keep old


class LSTM(Recurrence):
    """A long short-term memory (Hochreiter & Schmidhuber 1997; with the forget gate of Gers 2000, open at first)."""

    parts = 2
    gates = 4

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        self.input_gate, self.forget_gate, self.candidate, self.output_gate = (Tap() for _ in range(4))  # (B, D)
        if not self.input.weight.is_meta:
            nn.init.ones_(self.input.bias.data[width : 2 * width])

    @in_float32
    def step(self, given: Tensor, state: Tensor) -> Tensor:
        hidden, cell = state.unbind(1)
        enter, forget, new, output = (given + self.recurrent(hidden)).chunk(4, dim=-1)
        enter, forget, new, output = enter.sigmoid(), forget.sigmoid(), new.tanh(), output.sigmoid()
        if is_watching():
            enter, forget = self.input_gate(enter), self.forget_gate(forget)
            new, output = self.candidate(new), self.output_gate(output)
        cell = torch.addcmul(forget * cell, enter, new)
        return torch.stack([output * cell.tanh(), cell], dim=1)


class Elman(Recurrence):
    """The plain recurrence (Elman 1990): h_t = tanh(W x_t + U h_{t-1} + b), without gates."""

    parts = 1
    gates = 1

    @in_float32
    def step(self, given: Tensor, state: Tensor) -> Tensor:
        return torch.tanh(given.unsqueeze(1) + self.recurrent(state))


CELLS: dict[CellName, type[Recurrence]] = {"gru": GRU, "lstm": LSTM, "elman": Elman}


def output_of(states: Tensor) -> Tensor:
    """What the layer above, attention and the output layer take of states (…, P, D): the first part."""
    return states.squeeze(-2) if states.shape[-2] == 1 else states.select(-2, 0)


class RecurrentLayer(nn.Module):
    """One recurrent layer over whole sentences: forward, or bidirectional with half the width each."""

    def __init__(self, cell: CellName, inputs: int, width: int, *, bidirectional: bool) -> None:
        super().__init__()
        each = width // 2 if bidirectional else width
        self.forwards = CELLS[cell](inputs, each)
        self.backwards = CELLS[cell](inputs, each) if bidirectional else None
        self.hidden = Tap()

    def forward(self, hidden: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states (B, S, D), and the state (B, P, D) after the last token of each row.

        The backward direction ends at the first token.
        """
        begin = hidden.new_zeros(len(hidden), self.forwards.parts, self.forwards.width)
        states = self.forwards(hidden, begin)
        if self.backwards is None:
            return self.hidden(output_of(states)), last_of(states, lengths)
        order = reversed_order(lengths, hidden.shape[1])
        back = self.backwards(Reorder.apply(hidden, order), begin)
        both = torch.cat([output_of(states), Reorder.apply(output_of(back), order)], dim=-1)
        return self.hidden(both), torch.cat([last_of(states, lengths), last_of(back, lengths)], dim=-1)


def last_of(states: Tensor, lengths: Tensor) -> Tensor:
    """The states (B, P, D) of the last token of each row, from all of them (B, S, P, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states.flatten(0, 1).index_select(0, rows * states.shape[1] + lengths - 1)


def reversed_order(lengths: Tensor, length: int) -> Tensor:
    """(B, S): the positions of each row from its last token to its first; padding stays where it is."""
    position_ids = torch.arange(length, device=lengths.device)
    return torch.where(position_ids < lengths[:, None], lengths[:, None] - 1 - position_ids, position_ids)


class Reorder(torch.autograd.Function):
    """Hidden states (B, S, D) in another order (B, S) that is its own inverse: the backward pass reorders alike."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, order: Tensor) -> Tensor:
        rows = torch.arange(len(order), device=order.device)[:, None] * order.shape[1]
        ctx.save_for_backward(index := (rows + order).flatten())
        return hidden.flatten(0, 1).index_select(0, index).view_as(hidden)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return gradient.flatten(0, 1).index_select(0, index).view_as(gradient), None
