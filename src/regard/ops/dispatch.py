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

    The C forms read float32 in the CPU's memory and cannot be traced or compiled. An op without a backward pass of its
    own does not take the C form while gradients are recorded.
    """
    if _is_disabled or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return None
    if not has_backward and torch.is_grad_enabled():
        return None
    return library() if all(map(_is_readable, tensors)) else None


def _is_readable(tensor: Tensor) -> bool:
    """It has numbers, float32 in the CPU's memory, at the addresses that its strides give; an empty one has none."""
    is_float = tensor.is_cpu and tensor.dtype is torch.float32
    is_plain = type(tensor) in PLAIN_TYPES and tensor.layout is torch.strided and not tensor.is_neg()
    return is_float and is_plain and tensor.numel() > 0


def check(status: int) -> None:
    """Raise what a C function's status stands for; 0 is success."""
    if status == OUT_OF_MEMORY:
        raise MemoryError("there is not enough memory for the kernel's workspace")
    if status == OUT_OF_RANGE:
        raise IndexError("an index is out of range")
