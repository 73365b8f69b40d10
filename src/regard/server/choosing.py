"""Choose the next token of every text in a batch. A text's choice depends on its own row of the logits alone."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from regard.generation.strategies import Sample, penalize_repetition
from regard.ops.topk import argmax, logsumexp
from regard.server.texts import Sampling, Text, TokenScore


def choose(logits: Tensor, texts: Sequence[Text], banned: Collection[int]) -> list[int]:
    """The next token of each text, and, where a text asks for it, its log probabilities.

    A row whose logits are not finite has the token -1.
    """
    scored = [row for row, text in enumerate(texts) if text.num_top is not None]
    raw = logits[scored]  # before anything is banned
    changed = logits
    changed[:, list(banned)] = -torch.inf
    for row, text in enumerate(texts):
        if text.sampling.changes_logits:
            changed[row] = change(changed[row], text)
        if text.grammar is not None:
            changed[row].masked_fill_(~text.grammar.mask(), -torch.inf)
    chosen = [-1] * len(texts)
    groups: dict[Sampling | None, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        groups[_group(text.sampling)].append(row)
    for sampling, rows in groups.items():
        several = changed if len(rows) == len(texts) else changed[rows]
        if sampling is None:
            found = argmax(several)
        else:
            uniform = torch.tensor([texts[row].random.random() for row in rows], dtype=torch.float64)
            found = _strategy(sampling).pick(several, uniform)
        for row, token in zip(rows, found.tolist(), strict=True):
            chosen[row] = token
    finite = _finite(logits, chosen)
    for place, row in enumerate(scored):
        if finite[row]:
            text = texts[row]
            text.scores.append(
                score(raw[place], float(logsumexp(raw[place : place + 1])), chosen[row], text.num_top or 0)
            )
    return [token if good else -1 for token, good in zip(chosen, finite, strict=True)]


def _finite(logits: Tensor, chosen: Sequence[int]) -> list[bool]:
    """Of each row, whether the logit of its token is a number: NaN anywhere in a row is chosen, or makes it NaN."""
    found: list[bool] = logits[torch.arange(len(chosen)), torch.tensor(chosen)].isfinite().tolist()
    return found


def change(logits: Tensor, text: Text) -> Tensor:
    """Logits (V,) after the penalties and biases that a text asks for."""
    sampling = text.sampling
    logits = penalize_repetition(logits[None], [text.so_far], sampling.repetition_penalty)[0].clone()
    if sampling.presence_penalty or sampling.frequency_penalty:
        counts = Counter(text.tokens)
        ids = torch.tensor(list(counts), dtype=torch.long)
        logits[ids] -= sampling.presence_penalty + sampling.frequency_penalty * torch.tensor(list(counts.values()))
    for token, bias in sampling.logit_bias:
        logits[token] += bias
    return logits


def score(logits: Tensor, total: float, token: int, num_top: int) -> TokenScore:
    """The log probability of a token, and the most probable ones; logits (V,)."""
    top: tuple[tuple[int, float], ...] = ()
    if num_top:
        best = logits.topk(num_top)
        top = tuple(
            (one, value - total) for one, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        )
    return TokenScore(token, float(logits[token]) - total, top)


def prompt_scores(logits: Tensor, tokens: Sequence[int], num_top: int) -> list[TokenScore]:
    """The same for tokens that were given; logits (T, V) before each."""
    totals = logsumexp(logits).tolist()
    return [score(row, total, token, num_top) for row, total, token in zip(logits, totals, tokens, strict=True)]


def _group(sampling: Sampling) -> Sampling | None:
    """What rows have in common that can be chosen together; None: the most probable token."""
    if sampling.temperature == 0:
        return None
    return Sampling(sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p)


def _strategy(sampling: Sampling) -> Sample:
    return Sample(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p)
