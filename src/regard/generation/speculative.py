"""Speculative decoding: a draft guesses several tokens, and the model reads them all in one step.

Each token of the result is chosen by the strategy from the model's own logits after the tokens before it. So the text
is the one that the strategy finds without a draft: the same greedy tokens, and the same samples for the same seed
(Leviathan 2023 accepts guesses by another rule, which keeps the distribution but not the texts). A guess that differs
from the chosen token ends the step, and the tokens after it are forgotten.

    Greedy(draft=PromptLookup())            guesses what followed the same last tokens earlier in the text (Saxena 2023)
    Sample(draft=DraftModel(engine))        guesses what a smaller model with the same tokens goes on with
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.errors import ConfigError, InputError
from regard.generation.decode import Choose, Hypothesis, Limits, RunningText, eos_ids, mask_banned, ranked

MAX_GUESSES = 7  # with the token before them 8 rows, for which the kernels read each weight once

# Given logits (N, V) of some rows, and the guesses of each so far: what the strategy would choose.
ChooseGuess = Callable[[Tensor, list[int], list[list[int]]], list[int]]


class Guesser(Protocol):
    """The draft of one batch of texts."""

    def guess(self, contexts: list[list[int]], counts: list[int], choose: ChooseGuess) -> list[list[int]]:
        """At most `counts[i]` tokens that may follow context i."""

    def accepted(self, row: int, guessed: int, kept: int) -> None:
        """So many of the guessed tokens were right."""

    def reorder(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was."""


class Draft(Protocol):
    """Where guesses come from; a value, such as `PromptLookup()`."""

    def start(self, prompts: Sequence[Sequence[int]]) -> Guesser: ...


@dataclass(frozen=True)
class PromptLookup:
    """Guess what followed the last tokens when they stood earlier in the text: good where a text repeats itself.

    The longest match of `max_match` down to `min_match` tokens is taken, the latest first. Where guesses were wrong
    fewer are made.
    """

    num_guesses: int = MAX_GUESSES
    max_match: int = 4
    min_match: int = 2

    def __post_init__(self) -> None:
        _check_guesses(self.num_guesses)
        if not 1 <= self.min_match <= self.max_match:
            raise ConfigError(f"min_match is {self.min_match}, wanted 1 to max_match, which is {self.max_match}")

    def start(self, prompts: Sequence[Sequence[int]]) -> "_Lookup":
        return _Lookup(self, len(prompts))


@dataclass(frozen=True, eq=False)
class DraftModel:
    """Guess what a smaller model goes on with; it is an `Engine` over the same vocabulary."""

    engine: Any
    num_guesses: int = 4

    def __post_init__(self) -> None:
        _check_guesses(self.num_guesses)

    def start(self, prompts: Sequence[Sequence[int]]) -> "_Smaller":
        return _Smaller(self, prompts)


def _check_guesses(count: int) -> None:
    if not 1 <= count <= MAX_GUESSES:
        raise ConfigError(f"num_guesses is {count}, wanted 1 to {MAX_GUESSES}")


class _Lookup:
    """Each match of `min_match` tokens is found by an index of where they stood last, and made longer backward."""

    def __init__(self, settings: PromptLookup, rows: int) -> None:
        self.settings = settings
        self._ends: list[dict[tuple[int, ...], list[int]]] = [{} for _ in range(rows)]  # where such tokens end
        self._indexed = [0] * rows
        self._room = [settings.num_guesses] * rows

    def guess(self, contexts: list[list[int]], counts: list[int], choose: ChooseGuess) -> list[list[int]]:
        return [self._guess(row, *given) for row, given in enumerate(zip(contexts, counts, strict=True))]

    def _guess(self, row: int, context: list[int], count: int) -> list[int]:
        size = self.settings.min_match
        ends = self._ends[row]
        for end in range(max(size, self._indexed[row] + 1), len(context)):  # all but the last: it is what we look up
            ends.setdefault(tuple(context[end - size : end]), []).append(end)
        self._indexed[row] = max(self._indexed[row], len(context) - 1)
        found = ends.get(tuple(context[-size:]), ())[-16:]
        best, longest = 0, 0
        for end in reversed(found):
            length = size
            while (
                length < self.settings.max_match and end > length and context[end - length - 1] == context[-length - 1]
            ):
                length += 1
            if length > longest:
                best, longest = end, length
        return context[best : best + min(count, self._room[row])] if longest else []

    def accepted(self, row: int, guessed: int, kept: int) -> None:
        if guessed:
            self._room[row] = min(self.settings.num_guesses, max(1, kept + 1 + (kept == guessed) * guessed))

    def reorder(self, rows: Sequence[int]) -> None:
        self._ends = [{key: list(ends) for key, ends in self._ends[row].items()} for row in rows]
        self._indexed = [self._indexed[row] for row in rows]
        self._room = [self._room[row] for row in rows]


class _Smaller:
    """The smaller model's state: it has read a part of each text, and perhaps guesses that were wrong."""

    def __init__(self, settings: DraftModel, prompts: Sequence[Sequence[int]]) -> None:
        self.settings, self.engine = settings, settings.engine
        readable = [list(prompt[: self.engine.config.context]) for prompt in prompts]  # its context may be shorter
        self._state = self.engine.start(readable)
        self._read = [prompt[:-1] for prompt in readable]
        self._right = [1.0] * len(prompts)  # the share of guesses that were right lately

    def guess(self, contexts: list[list[int]], counts: list[int], choose: ChooseGuess) -> list[list[int]]:
        most, context_size = self.settings.num_guesses, self.engine.config.context
        counts = [
            min(count, max(1, round(1.5 * share * most)), most, max(0, context_size - len(context)))
            for context, count, share in zip(contexts, counts, self._right, strict=True)
        ]
        found: list[list[int]] = [[] for _ in contexts]
        lengths = [_common_length(read, context[:-1]) for read, context in zip(self._read, contexts, strict=True)]
        self._state.rewind(lengths)
        unread = [
            context[length:] if count else [] for context, length, count in zip(contexts, lengths, counts, strict=True)
        ]
        self._read = [context[:length] for context, length in zip(contexts, lengths, strict=True)]
        while going := [row for row, one in enumerate(unread) if one]:
            logits, self._state = self.engine.step_many(unread, self._state)
            for read, several in zip(self._read, unread, strict=True):
                read += several
            last = torch.tensor([len(unread[row]) for row in going]).cumsum(0) - 1
            tokens = choose(logits[last], going, found)
            unread = [[] for _ in contexts]
            for row, token in zip(going, tokens, strict=True):
                found[row].append(token)
                unread[row] = [token] if len(found[row]) < counts[row] else []
        return found

    def accepted(self, row: int, guessed: int, kept: int) -> None:
        if guessed:
            self._right[row] = 0.7 * self._right[row] + 0.3 * kept / guessed

    def reorder(self, rows: Sequence[int]) -> None:
        self._state.reorder(torch.tensor(rows, dtype=torch.long))
        self._read = [list(self._read[row]) for row in rows]
        self._right = [self._right[row] for row in rows]


def _common_length(one: list[int], other: list[int]) -> int:
    """How many first tokens two lists share."""
    least = min(len(one), len(other))
    if one[:least] == other[:least]:
        return least
    return next(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)


def decode_drafted(
    model: Any, draft: Draft, inputs: Sequence[Sequence[int]], limits: Limits, choose: Choose, num_samples: int = 1
) -> list[list[Hypothesis]]:
    """What `decode` finds, in fewer steps: each reads the guesses of a draft too, and may give several tokens a row."""
    if not hasattr(model, "step_many"):
        raise InputError(
            "a draft needs the recorded step of a language model on the CPU, and this model takes its plain step "
            "(--debug says why); leave out --draft"
        )
    ends, special_ids = set(eos_ids(model.config.special_ids, limits)), model.config.special_ids
    state, guesser = model.start(inputs), draft.start(inputs)
    running = sequences = [RunningText.start(n, num_samples, limits) for n in range(len(inputs) * num_samples)]
    if num_samples > 1:
        state.reorder(torch.tensor([one.row for one in sequences]))
        guesser.reorder([one.row for one in sequences])

    def choose_guess(logits: Tensor, rows: list[int], guesses: list[list[int]]) -> list[int]:
        return _choose(choose, logits, [(running[row], guesses[row]) for row in rows])

    while running:
        contexts = [[*inputs[one.row], *one.tokens] for one in running]
        rooms = [limits.max_new_tokens[one.row] - len(one.tokens) - 1 for one in running]
        guesses = guesser.guess(contexts, rooms, choose_guess)
        read = [[context[-1], *guess] for context, guess in zip(contexts, guesses, strict=True)]
        logits, state = model.step_many(read, state)
        asked = [(one, guess[:at]) for one, guess in zip(running, guesses, strict=True) for at in range(len(guess) + 1)]
        totals = _mask(logits, asked, special_ids, limits)
        tokens = _choose(choose, logits, asked)
        gains = (logits.gather(1, torch.tensor(tokens)[:, None])[:, 0] - totals).tolist()
        kept, lengths, first = [], [], 0
        for row, (one, guess) in enumerate(zip(running, guesses, strict=True)):
            right, goes_on = 0, True
            while goes_on:
                token = tokens[first + right]
                goes_on = one.append(token, gains[first + right], ends, limits)
                if right == len(guess) or token != guess[right]:
                    break
                right += 1
            guesser.accepted(row, len(guess), right)
            lengths.append(len(contexts[row]) + min(right, len(guess)))
            kept += [row] if goes_on else []
            first += len(guess) + 1
        state.rewind(lengths)
        if len(kept) < len(running):
            state.reorder(torch.tensor(kept, dtype=torch.long))
            guesser.reorder(kept)
            running = [running[row] for row in kept]
    return ranked(sequences, num_samples)


def _choose(choose: Choose, logits: Tensor, asked: list[tuple[RunningText, list[int]]]) -> list[int]:
    """The strategy's tokens after each text and the guesses before them."""
    numbers, steps = [one.number for one, _ in asked], [len(one.tokens) + len(guess) for one, guess in asked]
    contexts = [[*one.context, *guess] for one, guess in asked]
    return choose(logits, numbers, steps, contexts).tolist()


def _mask(logits: Tensor, asked: list[tuple[RunningText, list[int]]], special_ids: Any, limits: Limits) -> Tensor:
    """`mask_banned`, where the rows may be at different steps."""
    steps = [len(one.tokens) + len(guess) for one, guess in asked]
    if min(steps) >= limits.min_new_tokens:
        return mask_banned(logits, special_ids, limits, min(steps))
    return torch.cat([mask_banned(logits[at : at + 1], special_ids, limits, step) for at, step in enumerate(steps)])
