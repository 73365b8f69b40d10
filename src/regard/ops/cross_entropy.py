"""Cross-entropy over a large vocabulary, without holding the logits of a whole batch.

Logits (N, V) of 4,096 positions and 50,000 ids are 800 MB, and so is their gradient. `linear_cross_entropy` computes a
chunk of positions at a time: each chunk's loss and gradients are finished before the next begins, in one buffer.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from regard.ops.dispatch import c_library
from regard.ops.precision import is_autocast

IGNORE_INDEX = -100  # a target that adds no loss and no gradient
CHUNK = 2**23  # logits at a time: 32 MB


def linear_cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The sum of -log softmax(hidden weightᵀ)[target]: hidden (N, D), weight (V, D), targets (N,)."""
    if hidden.dim() != 2 or weight.dim() != 2:
        raise ValueError(f"hidden is {tuple(hidden.shape)} and weight {tuple(weight.shape)}, wanted (N, D) and (V, D)")
    if not len(weight) or weight.device != hidden.device:
        raise ValueError(f"weight is {tuple(weight.shape)} on {weight.device}, wanted ids, and on {hidden.device}")
    _check_form(targets, len(hidden), hidden.device)
    if not torch.is_grad_enabled():  # an autograd function would compute a parameter's gradient all the same
        hidden, weight = hidden.detach(), weight.detach()
    if not is_autocast(hidden.device):
        if hidden.dtype is not weight.dtype:
            raise ValueError(f"hidden is {hidden.dtype} and weight {weight.dtype}, wanted one dtype")
        return _LinearCrossEntropy.apply(hidden, weight, targets, hidden.dtype)
    device = hidden.device.type
    with torch.autocast(device, enabled=False):
        return _LinearCrossEntropy.apply(hidden, weight, targets, torch.get_autocast_dtype(device))


def linear_cross_entropy_in_torch(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The same in one line, which holds all logits."""
    return F.cross_entropy(hidden @ weight.t(), targets, ignore_index=IGNORE_INDEX, reduction="sum")


def cross_entropy_inplace(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """The same for given logits (N, V), with label smoothing.

    The logits may be overwritten: their memory becomes the gradient.
    """
    if len(logits) and not logits.is_leaf and _dispatch(logits) is not None:
        return _CrossEntropy.apply(logits, targets, label_smoothing)
    logits = logits.float() if is_autocast(logits.device) else logits  # in mixed precision a loss is in float32
    return F.cross_entropy(logits, targets, ignore_index=IGNORE_INDEX, label_smoothing=label_smoothing, reduction="sum")


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        gradient = logits.detach()
        losses = losses_and_gradient(gradient, targets, label_smoothing)
        torch.autograd.graph.increment_version(logits)  # a backward that needs the logits fails instead of using these
        ctx.save_for_backward(gradient)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(outer), None, None


def losses_and_gradient(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The losses (N,) of logits (N, V), which become the gradient by them: the probabilities, less 1 at the target."""
    counted = _check_targets(logits, targets)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing}, wanted 0 to 1")
    library = _dispatch(logits)
    if library is not None:
        losses, targets = logits.new_empty(len(logits)), targets.long().contiguous()
        library.cross_entropy(
            logits.data_ptr(),
            *logits.shape,
            targets.data_ptr(),
            label_smoothing,
            losses.data_ptr(),
            torch.get_num_threads(),
        )
        return losses
    if label_smoothing:
        raise ValueError("label smoothing has a C form only; use F.cross_entropy")
    indices = torch.where(counted, targets, 0).long()[:, None]
    at_target = logits.gather(1, indices)[:, 0]
    totals = logits.logsumexp(-1)
    logits.sub_(totals[:, None]).exp_()
    logits.scatter_add_(1, indices, logits.new_full((len(logits), 1), -1.0))
    logits.masked_fill_(~counted[:, None], 0.0)
    return (totals - at_target).masked_fill(~counted, 0.0)


def _dispatch(logits: Tensor) -> Any:
    return c_library(logits, has_backward=True) if logits.dim() == 2 and logits.is_contiguous() else None


def _check_targets(logits: Tensor, targets: Tensor) -> Tensor:
    """Which targets count (N,); ValueError where they do not match the logits (N, V)."""
    _check_form(targets, len(logits), logits.device)
    counted = targets != IGNORE_INDEX
    # An accelerator checks them itself, and the host need not wait; a simulated tensor has no numbers.
    if len(targets) and targets.is_cpu and type(targets) is Tensor:
        lowest, highest = torch.where(counted, targets, 0).aminmax()
        wrong = lowest if lowest < 0 else highest
        if lowest < 0 or highest >= logits.shape[1]:
            raise ValueError(f"a target is {int(wrong)}, wanted 0 to {logits.shape[1] - 1}, or {IGNORE_INDEX}")
    return counted


def _check_form(targets: Tensor, count: int, device: torch.device) -> None:
    is_integer = not targets.is_floating_point() and not targets.is_complex() and targets.dtype is not torch.bool
    if not is_integer or targets.shape != (count,) or targets.device != device:
        got = f"{targets.dtype} {tuple(targets.shape)} on {targets.device}"
        raise ValueError(f"targets are {got}, wanted integers ({count},) on {device}")


class _LinearCrossEntropy(Function):
    """The gradient of a sum is known with the sum: one pass over the chunks computes both.

    Products are computed in `dtype`; logits, losses and sums of gradients are float32 where that is a shorter one.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, dtype: torch.dtype) -> Tensor:
        needs_hidden, needs_weight = ctx.needs_input_grad[:2]
        by_hidden = torch.empty_like(hidden) if needs_hidden else None
        by_weight = torch.zeros_like(weight) if needs_weight else None
        total = weight.new_zeros(())
        rows = max(1, min(CHUNK // len(weight), len(hidden)))
        buffer = weight.new_empty(rows, len(weight))
        matrix = weight.to(dtype)
        for start in range(0, len(hidden), rows):
            chunk = hidden[start : start + rows].to(dtype)
            logits = _mm_into(buffer[: len(chunk)], chunk, matrix.t())
            total += losses_and_gradient(logits, targets[start : start + rows]).sum()
            gradient = logits.to(dtype)
            if by_hidden is not None:
                _mm_into(by_hidden[start : start + rows], gradient, matrix)
            if by_weight is not None and dtype is weight.dtype:
                by_weight.addmm_(gradient.t(), chunk)
            elif by_weight is not None:
                by_weight += torch.mm(gradient.t(), chunk)
        ctx.save_for_backward(*(gradient for gradient in (by_hidden, by_weight) if gradient is not None))
        ctx.needed = (needs_hidden, needs_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        saved = iter(ctx.saved_tensors)
        by_hidden, by_weight = (next(saved) * outer if needed else None for needed in ctx.needed)
        return by_hidden, by_weight, None, None


def _mm_into(out: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """The product in `out`, which may have another dtype."""
    return torch.mm(one, other, out=out) if one.dtype is out.dtype else out.copy_(torch.mm(one, other))
