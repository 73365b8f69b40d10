"""Exercises of the block: positions, norm, feed-forward, wiring, recurrence."""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.exercises.exercise import Exercise, Function, seeded
from regard.layers.positions import sinusoidal, sinusoidal_halves


def _waves(length: int, width: int, *, rate: int = 1, swap: bool = False, base: float = 10_000.0) -> Tensor:
    exponents = rate * torch.arange(0, width, 2) / width
    angles = torch.arange(length)[:, None] / base**exponents
    pair = (angles.cos(), angles.sin()) if swap else (angles.sin(), angles.cos())
    return torch.stack(pair, dim=-1).flatten(1)


def _rising(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] * 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def _steps_are_alike(positions: Function) -> bool:
    table = positions(30, 16)
    apart = torch.cdist(table, table).diagonal(3)
    return bool((apart.max() - apart.min()) < 1e-3)


POSITIONS = Exercise(
    "positions",
    "positions-and-masks",
    "Sinusoidal positions (length, width): PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos of "
    "the same angle.",
    "positions(length, width)",
    lambda: [(4, 6), (51, 130), (12, 2)],
    sinusoidal,
    {
        "sine and cosine are exchanged: sine stands in the even dimensions": lambda n, d: _waves(n, d, swap=True),
        "all sines stand before all cosines; they alternate": sinusoidal_halves,
        "the exponent is i / d; it is 2 i / d": lambda n, d: _waves(n, d, rate=1, base=10_000**0.5),
        "the positions count from 1; they count from 0": lambda n, d: _waves(n + 1, d)[1:],
        "the frequencies rise with i; they fall: divide by 10000^(2i/d)": _rising,
    },
    {"vectors the same number of positions apart are not equally far from each other": _steps_are_alike},
)


def _normed(x: Tensor, gain: Tensor, bias: Tensor, dim: int = -1, correction: int = 0, share: bool = True) -> Tensor:
    mean = x.mean(dim, keepdim=True)
    square = (x - mean).square()
    variance = square.sum(dim, keepdim=True) / (x.shape[dim] - correction if share else 1)
    return gain * (x - mean) / (variance + 1e-5).sqrt() + bias


LAYER_NORM = Exercise(
    "layer-norm",
    "the-block",
    "Layer norm of x (…, D): subtract the mean of each vector, divide by √(variance + 1e-5), multiply by "
    "gain (D), add bias "
    "(D). Do not call torch's.",
    "layer_norm(x, gain, bias)",
    lambda: [seeded((4, 8), (8,), (8,)), seeded((2, 3, 5), (5,), (5,), seed=1)],
    lambda x, gain, bias: F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5),
    {
        "the sum of squares is not divided by D: the slide's slip": lambda x, g, b: _normed(x, g, b, share=False),
        "the variance is divided by D - 1; layer norm divides by D": lambda x, g, b: _normed(x, g, b, correction=1),
        "the norm runs over the tokens; it runs over the D numbers of each": lambda x, g, b: _normed(x, g, b, dim=0),
        "the mean is not subtracted: that is RMS norm": lambda x, g, b: (
            g * x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() + b
        ),
        "the variance is not under a root": lambda x, g, b: (
            g * (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5) + b
        ),
    },
)


FEED_FORWARD = Exercise(
    "feed-forward",
    "the-block",
    "The feed-forward network relu(x W1 + b1) W2 + b2 for x (…, D), W1 (D, I), b1 (I), W2 (I, D), b2 (D).",
    "feed_forward(x, w1, b1, w2, b2)",
    lambda: [seeded((3, 4), (4, 8), (8,), (8, 4), (4,)), seeded((2, 3, 4), (4, 6), (6,), (6, 4), (4,), seed=1)],
    lambda x, w1, b1, w2, b2: (x @ w1 + b1).relu() @ w2 + b2,
    {
        "the activation is missing: two matrices in a row are one": lambda x, w1, b1, w2, b2: (x @ w1 + b1) @ w2 + b2,
        "the activation stands at the end too": lambda x, w1, b1, w2, b2: ((x @ w1 + b1).relu() @ w2 + b2).relu(),
        "the first bias is missing": lambda x, w1, b1, w2, b2: (x @ w1).relu() @ w2 + b2,
        "relu stands before the first bias": lambda x, w1, b1, w2, b2: ((x @ w1).relu() + b1) @ w2 + b2,
    },
)


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _attention(x: Tensor) -> Tensor:
    return (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ x


def _feed(x: Tensor) -> Tensor:
    return x.tanh() * 2


def _pre_norm(x: Tensor, attention: Function, feed_forward: Function, norm: Function) -> Tensor:
    x = x + attention(norm(x))
    return x + feed_forward(norm(x))


def _post_norm(x: Tensor, attention: Function, feed_forward: Function, norm: Function) -> Tensor:
    x = norm(x + attention(x))
    return norm(x + feed_forward(x))


def _no_residual(x: Tensor, attention: Function, feed_forward: Function, norm: Function) -> Tensor:
    return feed_forward(norm(attention(norm(x))))


def _of_the_normed(x: Tensor, attention: Function, feed_forward: Function, norm: Function) -> Tensor:
    x = norm(x)
    x = x + attention(x)
    x = norm(x)
    return x + feed_forward(x)


def _parallel(x: Tensor, attention: Function, feed_forward: Function, norm: Function) -> Tensor:
    return x + attention(norm(x)) + feed_forward(norm(x))


BLOCK = Exercise(
    "block",
    "the-block",
    "A pre-norm Transformer block from its parts, three functions of a tensor: attention, feed_forward and "
    "norm. c = x + "
    "attention(norm(x)), out = c + feed_forward(norm(c)).",
    "block(x, attention, feed_forward, norm)",
    lambda: [
        (seeded((2, 5, 6))[0], _attention, _feed, _norm),
        (seeded((1, 3, 4), seed=1)[0], _feed, _attention, _norm),
    ],
    _pre_norm,
    {
        "that is post-norm: norm(x + f(x)), as in the paper of 2017; the exercise asks for x + f(norm(x))": _post_norm,
        "the residual connections are missing: add what went in": _no_residual,
        "the sum adds the normed input; it adds the input itself": _of_the_normed,
        "feed-forward reads the input of the block; it reads what attention made of it": _parallel,
    },
)


def _run(x: Tensor, h: Tensor, w: Tensor, u: Tensor, b: Tensor, activation: Function = torch.tanh) -> Tensor:
    states = []
    for token in x.unbind(-2):
        h = activation(token @ w + h @ u + b)
        states.append(h)
    return torch.stack(states, dim=-2)


RECURRENCE = Exercise(
    "recurrence",
    "recurrence",
    "A recurrent network: h_t = tanh(x_t W + h_{t-1} U + b), for x (B, T, D), the first state h (B, H), W "
    "(D, H), U (H, H), "
    "b (H). Return all states (B, T, H).",
    "recurrence(x, h, w, u, b)",
    lambda: [seeded((2, 5, 3), (2, 4), (3, 4), (4, 4), (4,)), seeded((1, 2, 4), (1, 4), (4, 4), (4, 4), (4,), seed=1)],
    _run,
    {
        "every step starts from the first state: hand the new state on": lambda x, h, w, u, b: torch.tanh(
            x @ w + (h @ u)[:, None] + b
        ),
        "the first state is not used": lambda x, h, w, u, b: _run(x, torch.zeros_like(h), w, u, b),
        "tanh is missing": lambda x, h, w, u, b: _run(x, h, w, u, b, lambda value: value),
        "the text is read backwards": lambda x, h, w, u, b: _run(x.flip(1), h, w, u, b).flip(1),
    },
)

ALL = {one.name: one for one in (POSITIONS, LAYER_NORM, FEED_FORWARD, BLOCK, RECURRENCE)}
