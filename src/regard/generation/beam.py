"""Beam search: keep the best texts of each sentence side by side, and choose among the finished ones.

Each step looks at the 2·width best continuations of a sentence, where there is one end: each beam can end once, so
`width` of them do not. With more ends it looks at as many more. Those among the first `width` that end go to the
finished; the first `width` that do not end run on. A sentence is done when it has `width` finished texts and the best
running one, at its present length, would not beat the worst of them; or when the limit is reached. Done sentences
leave the batch.
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from regard.generation.decode import Generator, Hypothesis, Limits, allow, ends_of
from regard.ops.topk import topk


def beam_search(
    model: Generator, inputs: Any, limits: Limits, *, width: int, length_penalty: float
) -> list[list[Hypothesis]]:
    """For each sentence up to `width` hypotheses, the best first."""
    special_ids = model.config.special_ids
    ends = ends_of(special_ids, limits)
    ending = torch.tensor(ends)
    state = model.start(inputs)
    sentences = [Finished(width, length_penalty, ends) for _ in state.first]
    numbers = list(range(len(sentences)))  # which input each sentence of the batch is
    rows = torch.arange(len(numbers), device=state.first.device)[:, None].expand(-1, width)
    tokens = state.first.repeat_interleave(width)
    state.reorder(rows)
    written = tokens.new_empty(len(numbers), width, 0)
    totals = torch.full((len(numbers), width), -torch.inf, device=tokens.device)
    totals[:, 0] = 0.0  # the beams begin alike: only the first may be continued
    step = 0
    while numbers:
        logits, state = model.step(tokens, state)
        best = best_continuations(logits, allow(logits, special_ids, limits, step), totals, (1 + len(ends)) * width)
        texts = torch.cat(
            [_take(written, best.beams), best.tokens[..., None]], dim=-1
        )  # (sentences, candidates, step + 1)
        staying = []
        for place, number in enumerate(numbers):
            last = step + 1 == limits.longest[number]
            sentence = sentences[number]
            sentence.take(best.totals[place], texts[place], cut=last and not limits.closed)
            if last and limits.closed:
                sentence.close(best.totals[place], texts[place])
            if not last and not sentence.done(best, place, step + 1):
                staying.append(place)
        if not staying:
            break
        run_on = _first_running(best.tokens, ending, width)  # (sentences, width) places among the candidates
        kept = torch.tensor(staying, device=tokens.device)
        rows = (best.beams.gather(1, run_on) + torch.arange(len(numbers), device=tokens.device)[:, None] * width)[kept]
        state.reorder(rows)
        written = _take(texts, run_on)[kept]
        totals = best.totals.gather(1, run_on)[kept]
        tokens = written[..., -1].flatten()
        numbers = [numbers[place] for place in staying]
        step += 1
    return [sentence.ranked() for sentence in sentences]


@dataclass(frozen=True)
class Continuations:
    """The best continuations of each sentence, best first: (sentences, candidates) each."""

    totals: Tensor  # log probability of the whole text
    beams: Tensor  # which beam is continued
    tokens: Tensor  # with which token


def best_continuations(logits: Tensor, normal: Tensor, totals: Tensor, count: int) -> Continuations:
    """The `count` best of all beams' continuations, from logits (sentences * width, V) and totals so far.

    A token's log probability is its logit less its row's `normal`.
    """
    sentences, width = totals.shape
    likely, tokens = topk(logits, min(count, logits.shape[-1]))  # no beam gives more than `count` of them
    likely = likely - normal[:, None]
    candidates = (totals[..., None] + likely.view(sentences, width, -1)).flatten(1)
    best, place = candidates.topk(min(count, candidates.shape[-1]), dim=-1)
    each = likely.shape[-1]
    return Continuations(best, place // each, tokens.view(sentences, -1).gather(1, place))


@dataclass
class Finished:
    """The finished texts of one sentence: at most `width`, the best."""

    width: int
    length_penalty: float
    ends: list[int]
    found: list[Hypothesis] = field(default_factory=list)

    def take(self, totals: Tensor, texts: Tensor, *, cut: bool) -> None:
        """Keep those of the first `width` candidates that end here, or all of them where they are cut off."""
        for total, text in zip(totals[: self.width].tolist(), texts[: self.width].tolist(), strict=True):
            ended = text[-1] in self.ends
            if ended or cut:
                self._keep(text[:-1] if ended else text, total, len(text), ended)
        self.found = self.ranked()[: self.width]

    def close(self, totals: Tensor, texts: Tensor) -> None:
        """Keep the first `width` candidates that run on, ranked as if the end stood behind them for nothing."""
        running = (pair for pair in zip(totals.tolist(), texts.tolist(), strict=True) if pair[1][-1] not in self.ends)
        for total, text in islice(running, self.width):
            self._keep(text, total, len(text) + 1, False)
        self.found = self.ranked()[: self.width]

    def _keep(self, tokens: list[int], total: float, length: int, ended: bool) -> None:
        if total > -torch.inf:
            self.found.append(Hypothesis(tokens, total, total / length**self.length_penalty, ended))

    def done(self, best: Continuations, place: int, length: int) -> bool:
        """No running text, at its present length, would come among the finished ones."""
        if len(self.found) < self.width:
            return False
        running = best.totals[place][~torch.isin(best.tokens[place], torch.tensor(self.ends))]
        return len(running) == 0 or running[0].item() / length**self.length_penalty <= self.found[-1].score

    def ranked(self) -> list[Hypothesis]:
        return sorted(self.found, key=lambda hypothesis: -hypothesis.score)


def _take(beams: Tensor, which: Tensor) -> Tensor:
    """Of (sentences, beams, …) the beams `which` (sentences, n)."""
    return beams.gather(1, which[..., None].expand(-1, -1, beams.shape[-1]))


def _first_running(tokens: Tensor, ends: Tensor, width: int) -> Tensor:
    """The places of the first `width` candidates that do not end; stable, so that they stay ranked."""
    return torch.isin(tokens, ends).long().argsort(dim=-1, stable=True)[:, :width]
