"""What decides, for every op, whether its C form may run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.ops.library import DISABLED_BY_USER, OUT_OF_MEMORY, OUT_OF_RANGE, library, why_missing

__all__ = ["DISABLED_BY_USER", "c_library", "check", "disabled", "why_disabled"]

PLAIN_TYPES = (Tensor, torch.nn.Parameter)  # subclasses may have no numbers in memory
_is_disabled = False


@contextmanager
def disabled() -> Iterator[None]:
    """Run every op inside the block in its torch form, to count or compare torch's operations."""
    global _is_disabled
    before, _is_disabled = _is_disabled, True
    try:
        yield
    finally:
        _is_disabled = before


def why_disabled() -> str | None:
    """Why the C forms do not run: inside `disabled()`, or there is no library; None if they do."""
    return "inside ops.disabled()" if _is_disabled else why_missing()


def c_library(*tensors: Tensor, has_backward: bool = False) -> Any:
    """The C library if it can compute with these tensors, else None: the caller takes its torch form.

    The C forms read float32 in the CPU's memory, and cannot be traced, compiled or run in mixed precision. An op
    without a backward pass of its own does not take the C form while gradients are recorded.
    """
    if _is_disabled or torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_autocast_enabled("cpu"):
        return None
    if not has_backward and torch.is_grad_enabled():
        return None
    for tensor in tensors:
        if tensor.dtype is not torch.float32 or not tensor.is_cpu or type(tensor) not in PLAIN_TYPES:
            return None
        # no numbers at the addresses that its strides give: sparse, negated lazily, or empty
        if tensor.layout is not torch.strided or tensor.is_neg() or not tensor.numel():
            return None
    return library()


def check(status: int) -> None:
    """Raise what a C function's status stands for; 0 is success."""
    if status == OUT_OF_MEMORY:
        raise MemoryError("there is not enough memory for the kernel's workspace")
    if status == OUT_OF_RANGE:
        raise IndexError("an index is out of range")
