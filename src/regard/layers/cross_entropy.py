"""Cross-entropy over a large vocabulary, without ever holding the logits of a whole batch.

Logits (N, V) of 4,096 places and 50,000 words are 800 MB, and so is their gradient. Done a chunk of places at a time,
each chunk's loss and gradients are finished before the next begins, in one buffer that stays in use.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard import kernels

IGNORED = -100  # a target that is no lesson
CHUNK = 2**23  # logits at a time: 32 MB


def cross_entropy(hidden: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    """The sum over all places of -log softmax(words tableᵀ)[target]: words (N, D), table (V, D), targets (N,)."""
    if not torch.is_grad_enabled():  # which a function does not see: it would make a parameter's gradient all the same
        hidden, table = hidden.detach(), table.detach()
    return _Chunked.apply(hidden, table, targets)


def cross_entropy_written_out(hidden: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    """The same in one line."""
    return F.cross_entropy(hidden @ table.t(), targets, ignore_index=IGNORED, reduction="sum")


def cross_entropy_of(logits: Tensor, targets: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """The same for given logits (N, V), with label smoothing. They are used up: their memory becomes the gradient."""
    if len(logits) and logits.is_contiguous() and not logits.is_leaf and kernels.takes(logits):
        return _OfLogits.apply(logits, targets, smoothing)
    return F.cross_entropy(logits, targets, ignore_index=IGNORED, label_smoothing=smoothing, reduction="sum")


class _OfLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        gradient = logits.detach()
        losses = losses_and_gradients(gradient, targets, smoothing)
        torch.autograd.graph.increment_version(logits)  # whoever needs them as they were is told
        ctx.save_for_backward(gradient)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(outer), None, None


def losses_and_gradients(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """The losses (N,) of logits (N, V), which become the gradient by them: the probabilities, less 1 at the target."""
    counted = targets != IGNORED
    position_ids = torch.where(counted, targets, 0)
    least, most = position_ids.aminmax()
    assert least >= 0, f"a target of {least}; wanted 0 to {logits.shape[1] - 1}, or {IGNORED}"
    assert most < logits.shape[1], f"a target of {most}; wanted 0 to {logits.shape[1] - 1}, or {IGNORED}"
    if kernels.takes(logits):
        return kernels.cross_entropy(logits, targets.contiguous(), smoothing)
    assert not smoothing, "written for hard targets"
    right = logits.gather(1, position_ids[:, None])[:, 0]
    normal = logits.logsumexp(-1)
    logits.sub_(normal[:, None]).exp_()
    logits.scatter_add_(1, position_ids[:, None], logits.new_full((len(logits), 1), -1.0))
    logits *= counted[:, None]
    return (normal - right) * counted


class _Chunked(torch.autograd.Function):
    """The gradient of a sum is known with the sum: both are made in one pass over the chunks."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, table: Tensor, targets: Tensor) -> Tensor:
        for_words, for_table = ctx.needs_input_grad[:2]
        by_words = torch.empty_like(hidden) if for_words else None
        by_table = torch.zeros_like(table) if for_table else None
        total = hidden.new_zeros(())
        rows = max(1, min(CHUNK // len(table), len(hidden)))
        buffer = hidden.new_empty(rows, len(table))
        for start in range(0, len(hidden), rows):
            some, wanted = hidden[start : start + rows], targets[start : start + rows]
            logits = torch.mm(some, table.t(), out=buffer[: len(some)])
            total += losses_and_gradients(logits, wanted).sum()
            gradient = logits
            if by_words is not None:
                torch.mm(gradient, table, out=by_words[start : start + rows])
            if by_table is not None:
                by_table.addmm_(gradient.t(), some)
        ctx.save_for_backward(*(found for found in (by_words, by_table) if found is not None))
        ctx.wanted = (for_words, for_table)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        saved = iter(ctx.saved_tensors)
        by_words, by_table = (next(saved) * outer if wanted else None for wanted in ctx.wanted)
        return by_words, by_table, None
