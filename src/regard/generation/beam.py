"""Beam search: keep the best partial texts of each input, and choose among the finished ones.

With one eos id, each step takes the 2 · num_beams best continuations of an input: each beam can end once, so at least
`num_beams` of them go on. With more eos ids it takes that many more. Those among the first `num_beams` that end are
finished; the first `num_beams` that do not end go on. An input is done when it has `num_beams` finished texts and the
best running one, at its present length, would not beat the worst of them; or when the limit is reached. Done inputs
leave the batch.
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from regard.generation.decode import Generator, Hypothesis, Limits, eos_ids, mask_banned
from regard.ops.topk import topk


def beam_search(
    model: Generator, inputs: Any, limits: Limits, *, num_beams: int, length_penalty: float
) -> list[list[Hypothesis]]:
    """Up to `num_beams` hypotheses of each input, the best first."""
    special_ids = model.config.special_ids
    ends = eos_ids(special_ids, limits)
    state = model.start(inputs)
    device = state.first.device
    end_ids = torch.tensor(ends, dtype=torch.long, device=device)
    finished = [Finished(num_beams, length_penalty, ends) for _ in range(len(state.first))]
    numbers = list(range(len(finished)))  # of the inputs in the batch
    tokens = state.first.repeat_interleave(num_beams)
    state.reorder(torch.arange(len(numbers), device=device)[:, None].expand(-1, num_beams))
    texts = tokens.new_empty(len(numbers), num_beams, 0)
    totals = torch.full((len(numbers), num_beams), -torch.inf, device=device)
    totals[:, 0] = 0.0  # all beams are equal at first: only one of them is continued
    step = 0
    while numbers:
        logits, state = model.step(tokens, state)
        total = mask_banned(logits, special_ids, limits, step)
        best = best_continuations(logits, total, totals, (1 + len(ends)) * num_beams)
        candidates = torch.cat([_select(texts, best.beams), best.tokens[..., None]], dim=-1)  # (inputs, n, step + 1)
        found = zip(best.totals.tolist(), best.tokens.tolist(), candidates, strict=True)
        kept = [
            row
            for row, (number, one) in enumerate(zip(numbers, found, strict=True))
            if not finished[number].update(*one, limits, is_last=step + 1 == limits.max_new_tokens[number])
        ]
        if not kept:
            break
        going_on = _first_running(best.tokens, end_ids, num_beams)  # (inputs, num_beams)
        rows = torch.tensor(kept, device=device)
        offsets = torch.arange(len(numbers), device=device)[:, None] * num_beams
        state.reorder((best.beams.gather(1, going_on) + offsets)[rows])
        texts = _select(candidates, going_on)[rows]
        totals = best.totals.gather(1, going_on)[rows]
        tokens = texts[..., -1].flatten()
        numbers = [numbers[row] for row in kept]
        step += 1
    return [one.ranked() for one in finished]


@dataclass(frozen=True)
class Continuations:
    """The best continuations of each input, best first: (inputs, candidates) each."""

    totals: Tensor  # log probability of the whole text
    beams: Tensor  # which beam is continued
    tokens: Tensor  # with which token


def best_continuations(logits: Tensor, logsumexps: Tensor, totals: Tensor, count: int) -> Continuations:
    """The `count` best continuations of all beams, from logits (inputs * num_beams, V) and the totals so far.

    A token's log probability is its logit less its row's logsumexp.
    """
    inputs, num_beams = totals.shape
    values, tokens = topk(logits, min(count, logits.shape[-1]))  # no beam gives more than `count` of them
    values = values - logsumexps[:, None]
    candidates = (totals[..., None] + values.view(inputs, num_beams, -1)).flatten(1)
    best, indices = candidates.topk(min(count, candidates.shape[-1]), dim=-1)
    return Continuations(best, indices // values.shape[-1], tokens.view(inputs, -1).gather(1, indices))


@dataclass
class Finished:
    """The finished texts of one input: the best, at most `num_beams`."""

    num_beams: int
    length_penalty: float
    ends: list[int]
    found: list[Hypothesis] = field(default_factory=list)

    def update(self, totals: list[float], tokens: list[int], texts: Tensor, limits: Limits, *, is_last: bool) -> bool:
        """Take the finished ones of this input's continuations; returns whether its search is done.

        `texts` (candidates, length) end with `tokens`.
        """
        self.take_ended(totals, tokens, texts, cut=is_last and not limits.force_eos)
        if is_last and limits.force_eos:
            self.take_running(totals, tokens, texts)
        return is_last or self.is_done(totals, tokens, texts.shape[-1])

    def take_ended(self, totals: list[float], tokens: list[int], texts: Tensor, *, cut: bool) -> None:
        """Keep those of the first `num_beams` candidates that end here; all of them where they are cut off."""
        for number, token in enumerate(tokens[: self.num_beams]):
            ended = token in self.ends
            if ended or cut:
                text = texts[number]
                self._keep(text[:-1] if ended else text, totals[number], len(text), ended)
        self.found = self.ranked()[: self.num_beams]

    def take_running(self, totals: list[float], tokens: list[int], texts: Tensor) -> None:
        """Keep the first `num_beams` candidates that go on, ranked as if eos followed with probability 1."""
        running = (number for number, token in enumerate(tokens) if token not in self.ends)
        for number in islice(running, self.num_beams):
            self._keep(texts[number], totals[number], texts.shape[-1] + 1, False)
        self.found = self.ranked()[: self.num_beams]

    def _keep(self, text: Tensor, total: float, length: int, ended: bool) -> None:
        if total > -torch.inf:
            self.found.append(Hypothesis(text.tolist(), total, total / length**self.length_penalty, ended))

    def is_done(self, totals: list[float], tokens: list[int], length: int) -> bool:
        """No running text, at its present length, would come among the finished ones."""
        if len(self.found) < self.num_beams:
            return False
        running = next((total for total, token in zip(totals, tokens, strict=True) if token not in self.ends), None)
        return running is None or running / length**self.length_penalty <= self.found[-1].score

    def ranked(self) -> list[Hypothesis]:
        return sorted(self.found, key=lambda hypothesis: -hypothesis.score)


def _select(beams: Tensor, indices: Tensor) -> Tensor:
    """Of (inputs, beams, …) the beams `indices` (inputs, n)."""
    return beams.gather(1, indices[..., None].expand(-1, -1, beams.shape[-1]))


def _first_running(tokens: Tensor, ends: Tensor, count: int) -> Tensor:
    """The indices of the first `count` candidates that do not end; stable, so that they stay ranked."""
    return torch.isin(tokens, ends).long().argsort(dim=-1, stable=True)[:, :count]
