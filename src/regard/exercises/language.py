"""Exercises of language models: counting, perplexity, the loss, masked words."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.exercises.exercise import Exercise, Function, seeded


def _text(length: int, vocab_size: int, seed: int) -> Tensor:
    return torch.randint(vocab_size, (length,), generator=torch.Generator().manual_seed(seed))


def _bigram(ids: Tensor, vocab_size: int, start: float = 1.0, dim: int = 1) -> Tensor:
    counts = torch.full((vocab_size, vocab_size), start)
    counts.index_put_((ids[:-1], ids[1:]), torch.ones(len(ids) - 1), accumulate=True)
    return counts / counts.sum(dim, keepdim=True)


def _rows_are_distributions(bigram: Function) -> bool:
    return torch.allclose(bigram(_text(50, 6, 3), 6).sum(1), torch.ones(6), atol=1e-5)


BIGRAM = Exercise(
    "bigram",
    "words-and-language-models",
    "A bigram model of ids (T,): P[a, b] is the probability that b follows a. Count the pairs, add one to "
    "every count (so "
    "that nothing is impossible), divide each row by its sum. Return (vocab_size, vocab_size).",
    "bigram(ids, vocab_size)",
    lambda: [(_text(60, 5, 0), 5), (_text(20, 8, 1), 8)],
    _bigram,
    {
        "every count starts at 0: add one to every count": lambda ids, v: _bigram(ids, v, 0.0),
        "the columns sum to 1; the rows must": lambda ids, v: _bigram(ids, v, dim=0),
        "the first token of a pair is the column; it is the row": lambda ids, v: _bigram(ids.flip(0), v),
        "these are counts: divide each row by its sum": lambda ids, v: _bigram(ids, v) * _counts(ids, v),
    },
    {"a row does not sum to 1": _rows_are_distributions},
)


def _counts(ids: Tensor, vocab_size: int) -> Tensor:
    return vocab_size + torch.bincount(ids[:-1], minlength=vocab_size)[:, None].float()


PERPLEXITY = Exercise(
    "perplexity",
    "words-and-language-models",
    "The perplexity of a text from the probability p (T,) that a model gave to each of its tokens: e to the "
    "power of the "
    "mean of -ln p. Return a number.",
    "perplexity(p)",
    lambda: [(torch.tensor([0.25, 0.25, 0.25]),), (seeded((9,))[0].sigmoid(),), (torch.tensor([0.5, 0.01]),)],
    lambda p: math.exp(-p.log().mean().item()),
    {
        "that is the cross-entropy: the perplexity is e to that power": lambda p: -p.log().mean().item(),
        "that is 1 / the mean probability; the mean is one of logarithms": lambda p: 1 / p.mean().item(),
        "the sign is missing: the perplexity is at least 1": lambda p: math.exp(p.log().mean().item()),
        "2 to the power of nats: e belongs to ln, 2 to log2": lambda p: 2.0 ** -p.log().mean().item(),
        "the logarithms are summed; take their mean": lambda p: math.exp(-p.log().sum().item()),
    },
)


def _shifted(logits: Tensor, ids: Tensor, shift: int = 1, reduction: str = "mean") -> Tensor:
    kept = logits[:, : logits.shape[1] - shift] if shift else logits
    return F.cross_entropy(kept.flatten(0, 1), ids[:, shift:].flatten(), reduction=reduction)


def _loss_cases() -> list[tuple[Tensor, Tensor]]:
    return [
        (seeded((2, 6, 7))[0], _text(12, 7, 1).view(2, 6)),
        (seeded((3, 4, 5), seed=1)[0], _text(12, 5, 2).view(3, 4)),
    ]


def _backward(logits: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, :-1].flatten())


NEXT_TOKEN = Exercise(
    "next-token-loss",
    "positions-and-masks",
    "The loss of a language model: logits (B, T, V) for ids (B, T). The logits at position t predict the "
    "token at t + 1; the "
    "last position has no target. Return the mean cross-entropy, a number.",
    "next_token_loss(logits, ids)",
    _loss_cases,
    lambda logits, ids: _shifted(logits, ids).item(),
    {
        "there is no shift: position t is asked for token t, which it has read": lambda x, y: _shifted(x, y, 0).item(),
        "the shift goes the wrong way: position t predicts token t - 1": lambda x, y: _backward(x, y).item(),
        "the losses are summed; take their mean": lambda x, y: _shifted(x, y, 1, "sum").item(),
        "the sum is divided by B T; only B (T - 1) positions have a target": lambda x, y: (
            _shifted(x, y, 1, "sum").item() / y.numel()
        ),
        "the shift is two tokens": lambda x, y: _shifted(x, y, 2).item(),
    },
)


def _masked(logits: Tensor, ids: Tensor, asked: Tensor) -> Tensor:
    return F.cross_entropy(logits[asked], ids[asked])


def _asked(rows: int, length: int, seed: int) -> Tensor:
    return torch.rand(rows, length, generator=torch.Generator().manual_seed(seed)) < 0.3


MASKED_WORDS = Exercise(
    "masked-words",
    "bert-gpt-and-beyond",
    "The loss of masked words: logits (B, T, V), the true ids (B, T), and asked (B, T), True where a token "
    "was masked. Only "
    "the masked tokens count. Return their mean cross-entropy, a number.",
    "masked_loss(logits, ids, asked)",
    lambda: [
        (seeded((3, 8, 6))[0], _text(24, 6, 1).view(3, 8), _asked(3, 8, 0)),
        (seeded((2, 10, 4), seed=1)[0], _text(20, 4, 2).view(2, 10), _asked(2, 10, 5)),
    ],
    lambda logits, ids, asked: _masked(logits, ids, asked).item(),
    {
        "every token counts: only the masked ones should": lambda x, y, m: _masked(x, y, torch.ones_like(m)).item(),
        "the tokens that were not masked count; it is the others": lambda x, y, m: _masked(x, y, ~m).item(),
        "the sum is divided by all tokens; divide by the masked ones": lambda x, y, m: (
            _masked(x, y, m).item() * m.sum().item() / m.numel()
        ),
        "the losses are summed; take their mean": lambda x, y, m: _masked(x, y, m).item() * m.sum().item(),
        "the targets are shifted: a masked word is predicted at its own position": lambda x, y, m: _masked(
            x, y.roll(-1, 1), m
        ).item(),
    },
)

ALL = {one.name: one for one in (BIGRAM, PERPLEXITY, NEXT_TOKEN, MASKED_WORDS)}
