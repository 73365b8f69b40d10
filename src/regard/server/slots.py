"""The KV cache of a language model's server: slots of the engine, a bound on their memory, and prefixes used again.

A text that ends leaves its tokens in its slot. A new text that begins alike takes them over, or copies them from a
slot in use, and reads only the rest of its prompt: shared system prompts and conversations are read once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from regard.errors import InputError
from regard.generation.engine import Engine, SlotState
from regard.generation.recording import UnrecordableError
from regard.ops.dispatch import why_disabled

MIN_SHARED = 8  # tokens; a shorter common beginning is read again


@dataclass(eq=False)
class Slot:
    """One sequence of the cache."""

    number: int
    tokens: list[int] = field(default_factory=list)  # whose keys and values stand there
    is_used: bool = False
    touched: int = 0  # tokens whose memory is taken
    last_used: int = 0
    state: Any = None  # of a model without a recorded step


class Slots:
    """The cache over the recorded step."""

    def __init__(self, engine: Engine, count: int, max_bytes: int) -> None:
        self.engine = engine
        self.slots = [Slot(number) for number in range(count)]
        self.max_tokens = max(1, max_bytes // engine.token_bytes)
        self._clock = 0
        self.num_reused = 0  # tokens that were not read again
        # What keeps the engine from giving the slots to others.
        self._reserved = engine.start([[0]] * count)

    @property
    def num_tokens(self) -> int:
        """Tokens whose memory is taken."""
        return sum(slot.touched for slot in self.slots)

    @property
    def num_used(self) -> int:
        return sum(slot.is_used for slot in self.slots)

    def open(self, prompt: Sequence[int], *, reuse: bool = True) -> Slot | None:
        """A slot for this prompt, with the tokens that it has already; None: all are in use."""
        free = [slot for slot in self.slots if not slot.is_used]
        if not free:
            return None
        self._clock += 1
        source, length = self._longest_prefix(prompt[:-1]) if reuse else (None, 0)
        if source is not None and not source.is_used:
            chosen = source
        else:
            chosen = min(free, key=lambda slot: (bool(slot.tokens), slot.last_used))
            if source is not None:
                self.engine.copy_slot(source.number, chosen.number, length)
        chosen.tokens = list(prompt[:length])
        chosen.touched = max(chosen.touched, length)
        chosen.is_used, chosen.last_used = True, self._clock
        self.num_reused += length
        return chosen

    def close(self, slot: Slot) -> None:
        """The text has ended; its tokens stay until another needs the slot or the memory."""
        self._clock += 1
        slot.is_used, slot.last_used = False, self._clock

    def make_room(self, slot: Slot, count: int) -> bool:
        """Whether this slot may grow by so many tokens; idle slots give their memory for it, the oldest first."""
        more = max(0, len(slot.tokens) + count - slot.touched)
        missing = self.num_tokens + more - self.max_tokens
        idle = sorted((one for one in self.slots if not one.is_used and one.touched), key=lambda one: one.last_used)
        for one in idle:
            if missing <= 0:
                break
            missing -= one.touched
            self.forget(one)
        return missing <= 0

    def forget(self, slot: Slot) -> None:
        """Give the memory of a slot back."""
        self.engine.forget_slot(slot.number)
        slot.tokens, slot.touched = [], 0

    def read(self, slot: Slot, tokens: Sequence[int]) -> None:
        """More tokens of a prompt, without logits."""
        self.engine.read([tokens], self._state([slot]))
        self._add([slot], [tokens])

    def read_scored(self, slot: Slot, tokens: Sequence[int]) -> Tensor:
        """The same with the logits (T, V) after each."""
        found, _ = self.engine.step_many([tokens], self._state([slot]))
        self._add([slot], [tokens])
        return found

    def step(self, slots: Sequence[Slot], tokens: Sequence[int]) -> Tensor:
        """One more token in each of these: logits (B, V)."""
        found, _ = self.engine.step(torch.tensor(tokens), self._state(slots))
        self._add(slots, [[token] for token in tokens])
        return found

    def _state(self, slots: Sequence[Slot]) -> SlotState:
        numbers, lengths = [slot.number for slot in slots], [len(slot.tokens) for slot in slots]
        return SlotState(self.engine, torch.zeros(len(slots), dtype=torch.long), numbers, lengths)

    def _add(self, slots: Sequence[Slot], tokens: Sequence[Sequence[int]]) -> None:
        for slot, more in zip(slots, tokens, strict=True):
            slot.tokens += more
            slot.touched = max(slot.touched, len(slot.tokens))

    def _longest_prefix(self, prompt: Sequence[int]) -> tuple[Slot | None, int]:
        """The slot that begins most like this prompt, one that is not in use before others."""
        best: tuple[Slot | None, int] = (None, 0)
        for slot in sorted(self.slots, key=lambda slot: slot.is_used):
            if slot.tokens[:MIN_SHARED] == prompt[:MIN_SHARED] and len(prompt) >= MIN_SHARED:
                length = common_length(slot.tokens, prompt)
                if length > best[1]:
                    best = (slot, length)
        return best


class PlainSlots(Slots):
    """The same for a model whose step cannot be recorded: each text has the model's own state, and steps alone."""

    def __init__(self, model: Any, count: int) -> None:
        self.model = model
        self.slots = [Slot(number) for number in range(count)]
        self.max_tokens, self._clock, self.num_reused = model.config.context * count, 0, 0

    def open(self, prompt: Sequence[int], *, reuse: bool = True) -> Slot | None:
        slot = next((one for one in self.slots if not one.is_used), None)
        if slot is not None:
            slot.is_used, slot.tokens, slot.touched, slot.state = True, [], 0, None
        return slot

    def forget(self, slot: Slot) -> None:
        slot.tokens, slot.touched, slot.state = [], 0, None

    def close(self, slot: Slot) -> None:
        slot.is_used = False
        self.forget(slot)

    def read(self, slot: Slot, tokens: Sequence[int]) -> None:
        """The prompt is read by the first step."""
        self._add([slot], [tokens])

    def read_scored(self, slot: Slot, tokens: Sequence[int]) -> Tensor:
        self._add([slot], [tokens])
        device = next(self.model.parameters()).device
        hidden = self.model.hidden_states(torch.tensor([slot.tokens], device=device))[0, -len(tokens) :]
        found: Tensor = self.model.logits(hidden).float().cpu()
        return found

    def step(self, slots: Sequence[Slot], tokens: Sequence[int]) -> Tensor:
        rows = []
        device = next(self.model.parameters()).device
        for slot, token in zip(slots, tokens, strict=True):
            if slot.state is None:
                slot.state = self.model.start([[*slot.tokens, token]])
            logits, slot.state = self.model.step(torch.tensor([token], device=device), slot.state)
            rows.append(logits.float().cpu())
        self._add(slots, [[token] for token in tokens])
        return torch.cat(rows)


def slots_for(model: Any, count: int, max_bytes: int) -> Slots:
    """The recorded step of a model, or where it has none, its plain step."""
    is_plain = next(model.parameters()).device.type != "cpu" or why_disabled() is not None
    if not is_plain:
        try:
            return Slots(Engine(model, slots=count, capacity=model.config.context), count, max_bytes)
        except UnrecordableError:
            pass
    return PlainSlots(model, count)


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def check_fits(prompt: Sequence[int], max_new_tokens: int, context: int) -> None:
    """InputError where prompt and new tokens do not fit in the context."""
    if len(prompt) + max_new_tokens > context:
        raise InputError(
            f"the prompt has {len(prompt):,} tokens and max_tokens is {max_new_tokens:,}, together more than this "
            f"model's context of {context:,}; shorten one of them"
        )
