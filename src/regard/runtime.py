"""The state a process is put into before it computes: threads, denormals, memory, chance."""

import ctypes
import os
import platform
import sys
import time

import torch


def prepare(threads: int | None = None) -> None:
    """Put the process into the state in which torch is fast on a CPU; called once, by a command."""
    if threads is not None:
        torch.set_num_threads(threads)
    # Numbers near zero are computed in slow microcode: a fused AdamW step has been seen to take fifty times as long.
    torch.set_flush_denormal(True)
    _keep_memory()


def _keep_memory() -> None:
    """Tell glibc to keep freed memory: fresh pages for large tensors cost up to 15 % of a training step."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc" or "MALLOC_TOP_PAD_" in os.environ:
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # M_* of malloc.h
    largest = 2**31 - 1
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, largest)
    libc.mallopt(trim_threshold, largest)
    libc.mallopt(top_pad, 64 * 2**20)


def matrix_limit() -> float:
    """FLOP/s that a large matrix product reaches here and now: the yardstick of a training step."""
    size = 1024
    one, other, product = (torch.zeros(size, size) for _ in range(3))
    seconds = []
    for _ in range(8):
        begun = time.perf_counter()
        torch.mm(one, other, out=product)
        seconds.append(time.perf_counter() - begun)
    return 2 * size**3 / sorted(seconds)[1]  # the fastest but one


def seed_everything(*numbers: int) -> None:
    """Make what follows a pure function of these numbers: each training step is seeded by (seed, step)."""
    mixed = 0
    for number in numbers:
        # splitmix64's finalizer: neighboring steps must not get neighboring streams.
        mixed = (mixed + number + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        mixed ^= mixed >> 31
    torch.manual_seed(mixed % 2**63)
