"""The fast way to decode on a CPU: a model's step, recorded as a program, behind the decoding protocol.

`Engine(model)` has the model's `start` and `step`, so every strategy works with it. A sequence lives in a slot of the
KV cache; rows that leave, join or change places change slots, and nothing is padded.

Continuous batching, where every row has a sequence of its own that begins and ends when it likes:

    engine = Engine(model, slots=16)              # room for 16 sequences at once; more are made when they are needed
    state = engine.start([])                      # no rows yet
    state.join(engine.start([prompt]))            # a row joins; state.first has the last token of its prompt
    logits, state = engine.step(tokens, state)    # one more token in every row: logits (B, V)
    state.reorder(torch.tensor([0, 2]))           # rows leave, and their slots are free

A long prompt is read in pieces between the steps of the others: `start` with its first tokens, then `read` with more.
`step_many` takes several tokens in every row and gives the logits after each, and `state.rewind` forgets the last
tokens: speculative decoding. One engine is used by one thread at a time.
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
from regard.ops.lazy_memory import forget
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

    def __init__(self, model: Any, *, slots: int = 1, capacity: int = FIRST_CAPACITY) -> None:
        self.model, self.config = model, model.config
        self._program = record(model, PREFILL_ROWS, slots, min(capacity, self.config.context))
        self._states: weakref.WeakSet[SlotState] = weakref.WeakSet()  # whose slots are in use

    def start(self, prompts: Sequence[Sequence[int]]) -> "SlotState":
        """Prefill: all tokens of the prompts but the last of each, which is the first of `step`."""
        for number, prompt in enumerate(prompts):
            if not len(prompt):
                raise InputError(f"prompt {number + 1} has no tokens, wanted at least one, such as bos_id")
        first = torch.tensor([prompt[-1] for prompt in prompts], dtype=torch.long)
        state = SlotState(self, first, self.free_slots(len(prompts)), [0] * len(prompts))
        self._states.add(state)
        self.read([prompt[:-1] for prompt in prompts], state)
        return state

    def read(self, tokens: Sequence[Sequence[int]], state: "SlotState") -> None:
        """Several more tokens in every row, as many as each is given, without logits."""
        for part in self._run("run_hidden", *self._rows(tokens, state), is_wanted=False):
            assert not len(part)

    def step_many(self, tokens: Sequence[Sequence[int]], state: "SlotState") -> tuple[Tensor, "SlotState"]:
        """Logits (N, V) after each of several more tokens in every row, row by row; N is the number of all tokens."""
        return self._step("run", tokens, state)

    def _rows(self, tokens: Sequence[Sequence[int]], state: "SlotState") -> tuple[Tensor, Tensor, Tensor]:
        """The ids, slots and positions of more tokens in every row; their room is made, and the rows are longer."""
        if len(tokens) != len(state.slots):
            raise ValueError(f"tokens for {len(tokens)} rows, wanted {len(state.slots)}")
        before, counts = state.lengths, [len(several) for several in tokens]
        lengths = [length + count for length, count in zip(before, counts, strict=True)]
        self._grow(max(state.slots, default=-1) + 1, max(lengths, default=0))
        state.lengths = lengths
        positions = [torch.arange(length - count, length) for length, count in zip(lengths, counts, strict=True)]
        return (
            torch.tensor([one for several in tokens for one in several], dtype=torch.long),
            torch.tensor(state.slots, dtype=torch.long).repeat_interleave(torch.tensor(counts, dtype=torch.long)),
            torch.cat(positions) if positions else torch.zeros(0, dtype=torch.long),
        )

    @shortlisted
    def step(self, tokens: Tensor, state: "SlotState") -> tuple[Tensor, "SlotState"]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        return self._step("run", tokens[:, None].tolist(), state)

    def decode_step(self, tokens: Tensor, state: "SlotState") -> tuple[Tensor, "SlotState"]:
        """A step without the output layer: hidden states (B, D)."""
        return self._step("run_hidden", tokens[:, None].tolist(), state)

    @shortlisted
    def logits(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.model.logits(hidden)
        return found

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """The model's: finds the largest logit without computing all of them."""
        found: ArgmaxShortlist | None = self.model.argmax_shortlist()
        return found

    def _step(self, run: str, tokens: Sequence[Sequence[int]], state: "SlotState") -> tuple[Tensor, "SlotState"]:
        found = list(self._run(run, *self._rows(tokens, state), is_wanted=True))
        return found[0].clone() if len(found) == 1 else torch.cat(found), state

    def copy_slot(self, source: int, target: int, length: int) -> None:
        """The first `length` tokens of a slot stand in another one too."""
        self._grow(target + 1, length)
        for layer in self._program.caches:
            for cached in layer:
                cached[target, :, :length] = cached[source, :, :length]

    def forget_slot(self, slot: int) -> None:
        """Give the memory of a slot's tokens back, where the system can."""
        for layer in self._program.caches:
            for cached in layer:
                forget(cached[slot])

    @property
    def token_bytes(self) -> int:
        """Memory of one token in the KV cache."""
        return sum(cached[0, :, 0].nbytes for layer in self._program.caches for cached in layer)

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
        """A program with at least so many slots of such a length; what is in the cache stays."""
        before = self._program
        if slots <= before.slots and length <= before.capacity:
            return
        if slots > before.slots:  # recorded once for many rows that join one by one
            slots = max(slots, 2 * before.slots)
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

    def join(self, other: "SlotState") -> None:
        """The rows of another state of this engine come after one's own; the other has none any more."""
        if other.engine is not self.engine or other is self:
            raise ValueError("a state can be joined only by another one of the same engine")
        self.first = torch.cat([self.first, other.first])
        self.slots, other.slots = self.slots + other.slots, []
        self.lengths, other.lengths = self.lengths + other.lengths, []
        other.first = other.first[:0]

    def rewind(self, lengths: Sequence[int]) -> None:
        """Keep only so many tokens of each row."""
        if len(lengths) != len(self.lengths) or any(
            not 0 <= wanted <= length for wanted, length in zip(lengths, self.lengths, strict=False)
        ):
            raise ValueError(f"lengths are {list(lengths)}, wanted at most {self.lengths}")
        self.lengths = list(lengths)
