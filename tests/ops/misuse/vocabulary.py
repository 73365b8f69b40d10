"""Right uses of the ops over a vocabulary: cross-entropy, top-k, exact shortlist."""

from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops import shortlist as shortlist_module
from regard.ops.cross_entropy import (
    IGNORE_INDEX,
    cross_entropy_inplace,
    linear_cross_entropy,
    losses_and_gradient,
)
from regard.ops.linear import linear
from regard.ops.shortlist import ArgmaxShortlist
from regard.ops.topk import argmax, logsumexp, topk
from tests.ops.forms import numbers
from tests.ops.misuse.gradients import with_gradients
from tests.ops.misuse.judging import Op
from tests.ops.misuse.products import plain_linear

# ------------------------------------------------ cross-entropy


def some_targets(rows: int, size: int) -> Tensor:
    targets = (numbers(rows, seed=5).abs() * 1000).long() % size
    if rows > 1:
        targets[1] = IGNORE_INDEX
    return targets


def plain_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float = 0.0, reduction: str = "sum"
) -> Tensor:
    """Torch takes targets of int64 and uint8 alone."""
    if targets.is_floating_point() or targets.dtype is torch.bool or targets.shape != logits.shape[:1]:
        raise ValueError("no targets")
    logits = torch.where((targets == IGNORE_INDEX)[:, None], 0.0, logits)  # they add nothing, even damaged ones
    return F.cross_entropy(
        logits, targets.long(), ignore_index=IGNORE_INDEX, label_smoothing=label_smoothing, reduction=reduction
    )


def used_up(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Of a copy: the logits of a leaf are not overwritten, and those of a copy may be."""
    return cross_entropy_inplace(logits * 1, targets, label_smoothing=label_smoothing)


def losses_with_gradient(logits: Tensor, targets: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        losses = losses_and_gradient(logits.detach(), targets, label_smoothing)
    return losses, logits.detach()


def plain_losses_with_gradient(logits: Tensor, targets: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
    if logits.dim() != 2 or not 0 <= label_smoothing <= 1:
        raise ValueError("no logits (N, V), or no smoothing")
    logits.detach().mul_(1)  # where they cannot be overwritten, this raises
    with torch.inference_mode(False), torch.enable_grad():
        leaf = logits.clone().detach().requires_grad_()
        losses = plain_cross_entropy(leaf, targets.clone(), label_smoothing, "none")
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
    return losses, gradient


def loss_use(rows: int, size: int) -> Any:
    return lambda: {"logits": numbers(rows, size) * 5, "targets": some_targets(rows, size), "label_smoothing": 0.0}


def linear_loss_use(rows: int, size: int, width: int) -> Any:
    return lambda: {
        "hidden": numbers(rows, width),
        "weight": numbers(size, width, seed=1),
        "targets": some_targets(rows, size),
    }


def plain_linear_loss(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    if hidden.dim() != 2 or weight.dim() != 2:
        raise ValueError("no matrices")
    return plain_cross_entropy(hidden @ weight.t(), targets)


SMOOTHING = {"label_smoothing": [0.1, 1.0, -0.1, 1.1, torch.nan]}
LOSS_SIZES = ((6, 24), (1, 1), (3, 17), (20, 33), (2, 16))
LOSSES = [
    Op(
        "cross_entropy_inplace",
        with_gradients(used_up),
        with_gradients(plain_cross_entropy),
        [loss_use(*size) for size in LOSS_SIZES],
        SMOOTHING,
    ),
    Op(
        "losses_and_gradient",
        losses_with_gradient,
        plain_losses_with_gradient,
        [loss_use(*size) for size in LOSS_SIZES],
        SMOOTHING,
    ),
    *(
        Op(
            f"{form.__name__}{suffix}",
            wrap(form),
            wrap(plain_linear_loss),
            [linear_loss_use(*size, width) for size in LOSS_SIZES for width in (5, 24)],
        )
        for form in (linear_cross_entropy,)
        for suffix, wrap in ((" backward", with_gradients), ("", lambda form: form))
    ),
]

# ------------------------------------------------ top-k


def best(form: Any) -> Any:
    """The values, and the logits at the indices: of equal ones either index is right."""

    def found(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
        values, indices = form(logits, k)
        if logits.dim() != 2:
            raise ValueError("no matrix")
        return values, logits.gather(1, indices)

    return found


def of_matrix(form: Any) -> Any:
    def applied(logits: Tensor) -> Tensor:
        if logits.dim() != 2:
            raise ValueError("no matrix")
        return form(logits, -1)

    return applied


TOPK_SIZES = ((3, 24), (1, 1), (2, 17), (5, 300), (2, 64 * 130))
TOPK = [
    Op(
        "topk",
        best(topk),
        best(torch.topk),
        [lambda size=size: {"logits": numbers(*size), "k": min(5, size[1])} for size in TOPK_SIZES],
        {"k": [-1, 0, 1, 23, 24, 25, 2**40, -(2**40)]},
    ),
    Op(
        "topk of many",
        best(topk),
        best(torch.topk),
        [lambda: {"logits": numbers(3, 100), "k": 65}],
        {"k": [63, 64, 65, 99, 100, 101]},
    ),
    *(
        Op(
            form.__name__,
            form,
            of_matrix(plain),
            [lambda size=size: {"logits": numbers(*size)} for size in TOPK_SIZES],
        )
        for form, plain in ((argmax, torch.argmax), (logsumexp, torch.logsumexp))
    ),
]

# ------------------------------------------------ exact shortlist


def built_argmax(hidden: Tensor, weight: Tensor, bias: Any, banned: frozenset[int]) -> Tensor:
    """Where no shortlist is built, from all logits."""
    with mock.patch.object(shortlist_module, "MIN_SIZE", 0):
        shortlist = ArgmaxShortlist.build(weight, bias)
    if shortlist is None:
        return plain_argmax(hidden, weight, bias, banned, linear)
    return shortlist.argmax(hidden, banned)


def plain_argmax(hidden: Tensor, weight: Tensor, bias: Any, banned: frozenset[int], form: Any = plain_linear) -> Tensor:
    logits = form(hidden, weight, bias)
    damaged = ~(logits < torch.inf).all(-1)
    logits[..., sorted(banned)] = -torch.inf
    return logits.argmax(-1).masked_fill(damaged | (logits == -torch.inf).all(-1), -1)


def shortlist_use(rows: int, size: int, width: int) -> Any:
    return lambda: {
        "hidden": numbers(rows, width),
        "weight": numbers(size, width, seed=1),
        "bias": numbers(size, seed=2),
        "banned": frozenset([0]) if size > 1 else frozenset(),
    }


SHORTLIST = [
    Op(
        "ArgmaxShortlist",
        built_argmax,
        plain_argmax,
        [shortlist_use(*size) for size in ((5, 24, 70), (1, 1, 1), (3, 33, 17), (20, 300, 130), (70, 50, 64))],
        {"bias": [None], "banned": [frozenset(), frozenset([24]), frozenset([-1]), frozenset(range(24))]},
    )
]
