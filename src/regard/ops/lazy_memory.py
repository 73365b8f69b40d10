"""Float32 memory that costs nothing until it is written, and can be given back: large KV caches of short texts.

The operating system has it in pages. A cache of 64 sequences of 8,192 tokens takes room for the tokens that were
written, and a sequence that has ended gives its pages back.
"""

import ctypes
import math
import mmap
from contextlib import suppress
from functools import cache
from typing import Any

import torch
from torch import Tensor

FLOAT_BYTES = 4


def lazy_zeros(*shape: int) -> Tensor:
    """Zeros of this shape; a page is taken when it is first written."""
    count = math.prod(shape)
    memory = mmap.mmap(-1, max(1, count) * FLOAT_BYTES)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # a huge page would take 2 MB for the first token of each head
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.float32, count=max(1, count))[:count].view(shape)


def forget(memory: Tensor) -> None:
    """Give the whole pages of a contiguous part of `lazy_zeros` back; what stood there is zero, or as it was."""
    assert memory.is_contiguous(), "only contiguous memory has pages of its own"
    madvise = _madvise()
    start = -(-memory.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (memory.data_ptr() + memory.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if madvise is not None and end > start:
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


@cache
def _madvise() -> Any:
    """The C function; None where the system has none."""
    if not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return getattr(ctypes.CDLL(None), "madvise", None)
