"""Process-wide settings of torch: threads, denormals, memory allocation, random seeds."""

import ctypes
import os
import platform
import sys
import time

import torch


def prepare(threads: int | None = None) -> None:
    """Configure the process so that torch is fast on a CPU; called once by each command."""
    if threads is not None:
        torch.set_num_threads(threads)
    # Denormal numbers are computed in slow microcode: a fused AdamW step took fifty times as long.
    torch.set_flush_denormal(True)
    _keep_memory()


def _keep_memory() -> None:
    """Make glibc keep freed memory: new pages for large tensors cost up to 15 % of a training step."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc" or "MALLOC_TOP_PAD_" in os.environ:
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # M_* of malloc.h
    max_int = 2**31 - 1
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, max_int)
    libc.mallopt(trim_threshold, max_int)
    libc.mallopt(top_pad, 64 * 2**20)


def matrix_limit() -> float:
    """FLOP/s of a large matrix product on this machine, the reference for the utilization of a training step."""
    size = 1024
    one, other, product = (torch.zeros(size, size) for _ in range(3))
    seconds = []
    for _ in range(8):
        start = time.perf_counter()
        torch.mm(one, other, out=product)
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / sorted(seconds)[1]  # the second fastest


def seed_everything(*numbers: int) -> None:
    """Seed torch by these numbers: a training step, for example, by (seed, step)."""
    mixed = 0
    for number in numbers:
        # The finalizer of splitmix64: similar numbers must not give similar random streams.
        mixed = (mixed + number + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        mixed ^= mixed >> 31
    torch.manual_seed(mixed % 2**63)
