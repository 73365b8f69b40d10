"""The fast way to decode on a CPU: a model's step, recorded as a program, behind the decoding protocol.

`Engine(model)` has the model's `start` and `step`, so every strategy works with it. A sequence lives in a slot of the
KV cache; rows that leave, join or change places change slots, and nothing is padded.
"""

import logging
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from regard.errors import InputError
from regard.generation.recording import UnrecordableError, record
from regard.layers.decoding import shortlisted
from regard.layers.tap import watched
from regard.ops.dispatch import why_disabled
from regard.ops.shortlist import ArgmaxShortlist

logger = logging.getLogger(__name__)

PREFILL_ROWS = 128  # tokens read at once
FIRST_CAPACITY = 256  # tokens of a slot at first; it doubles


def engine_for(model: Any) -> "Engine | None":
    """The engine of a model; None where its plain step is to be taken, with the reason in the log (--debug)."""
    reason = why_disabled() or _why_plain(model)
    if reason is None:
        try:
            return Engine(model)
        except UnrecordableError as error:
            reason = str(error)
    logger.debug("%s decodes by its plain step: %s", type(model).__name__, reason)
    return None


def _why_plain(model: Any) -> str | None:
    if not all(getattr(getattr(model, name, None), "is_shortlisted", False) for name in ("step", "logits")):
        return "it has a step of its own"
    tensors = [*model.parameters(), *model.buffers()]
    if any(not tensor.is_cpu or tensor.dtype is not torch.float32 for tensor in tensors):
        return "it is not in float32 on the CPU"
    return "its inner values are watched" if watched(model) else None


class Engine:
    """A language model whose steps are a program; `generate` takes it in place of the model."""

    def __init__(self, model: Any) -> None:
        self.model, self.config = model, model.config
        self._program = record(model, PREFILL_ROWS, 1, min(FIRST_CAPACITY, self.config.context))
        self._states: weakref.WeakSet[SlotState] = weakref.WeakSet()  # whose slots are in use

    def start(self, prompts: Sequence[Sequence[int]]) -> "SlotState":
        """Prefill: all tokens of the prompts but the last of each, which is the first of `step`."""
        for number, prompt in enumerate(prompts):
            if not len(prompt):
                raise InputError(f"prompt {number + 1} has no tokens, wanted at least one, such as bos_id")
        state = SlotState(self, torch.tensor([prompt[-1] for prompt in prompts]), [], [len(one) - 1 for one in prompts])
        state.slots = self.free_slots(len(prompts))
        self._states.add(state)
        self._grow(max(state.slots) + 1, max(state.lengths) + 1)
        lengths = torch.tensor(state.lengths)
        ids = torch.tensor([one for prompt in prompts for one in prompt[:-1]], dtype=torch.long)
        slots = torch.tensor(state.slots).repeat_interleave(lengths)
        positions = torch.cat([torch.arange(length) for length in state.lengths])
        for part in self._run("run_hidden", ids, slots, positions, is_wanted=False):
            assert not len(part)
        return state

    @shortlisted
    def step(self, tokens: Tensor, state: "SlotState") -> tuple[Tensor, "SlotState"]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        return self._step("run", tokens, state)

    def decode_step(self, tokens: Tensor, state: "SlotState") -> tuple[Tensor, "SlotState"]:
        """A step without the output layer: hidden states (B, D)."""
        return self._step("run_hidden", tokens, state)

    @shortlisted
    def logits(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.model.logits(hidden)
        return found

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """The model's: finds the largest logit without computing all of them."""
        found: ArgmaxShortlist | None = self.model.argmax_shortlist()
        return found

    def _step(self, run: str, tokens: Tensor, state: "SlotState") -> tuple[Tensor, "SlotState"]:
        self._grow(0, max(state.lengths) + 1)
        rows = tokens, torch.tensor(state.slots), torch.tensor(state.lengths)
        found = list(self._run(run, *rows, is_wanted=True))
        state.lengths = [length + 1 for length in state.lengths]
        return found[0].clone() if len(found) == 1 else torch.cat(found), state

    def copy_slot(self, source: int, target: int, length: int) -> None:
        """The first `length` tokens of a slot stand in another one too."""
        self._grow(target + 1, length)
        for layer in self._program.caches:
            for cached in layer:
                cached[target, :, :length] = cached[source, :, :length]

    def free_slots(self, count: int) -> list[int]:
        """The first slots that no state uses; there are as many as are wanted."""
        taken = {slot for state in self._states for slot in state.slots}
        free = (slot for slot in range(count + len(taken)) if slot not in taken)
        return list(islice(free, count))

    def _run(self, run: str, ids: Tensor, slots: Tensor, positions: Tensor, *, is_wanted: bool) -> Iterator[Tensor]:
        """The results of each part of the rows; the earlier ones are copied, since the program writes over them."""
        most = self._program.max_wanted if is_wanted else self._program.max_rows
        for start in range(0, len(ids), most):
            given = [part[start : start + most] for part in (ids, slots, positions)]
            found = getattr(self._program, run)(*given, torch.arange(len(given[0]) if is_wanted else 0))
            yield found if start + most >= len(ids) else found.clone()

    def _grow(self, slots: int, length: int) -> None:
        """A program with so many slots of such a length; what is in the cache stays."""
        before = self._program
        if slots <= before.slots and length <= before.capacity:
            return
        capacity = before.capacity
        while capacity < length:
            capacity *= 2
        capacity = max(length, min(capacity, self.config.context))
        self._program = record(self.model, before.max_rows, max(slots, before.slots), capacity)
        for old, new in zip(before.caches, self._program.caches, strict=True):
            for one, other in zip(old, new, strict=True):
                other[: before.slots, :, : before.capacity] = one


@dataclass(eq=False)
class SlotState:
    """What continuing prompts carries from step to step: the slot of each row, and how many tokens it has."""

    engine: Engine
    first: Tensor  # (B,) the last token of each prompt: the tokens to step first
    slots: list[int]
    lengths: list[int]

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows may be (inputs, beams)."""
        chosen = rows.flatten().tolist()
        self.first = self.first[rows.flatten()]
        before, self.slots = self.slots, []
        free = self.engine.free_slots(len(before) + len(chosen))
        free = [slot for slot in free if slot not in {before[row] for row in chosen}]
        for row in chosen:
            slot = before[row]
            if slot in self.slots:  # a second row goes on from the same tokens: they are copied
                slot = free.pop(0)
                self.engine.copy_slot(before[row], slot, self.lengths[row])
            self.slots.append(slot)
        self.lengths = [self.lengths[row] for row in chosen]
