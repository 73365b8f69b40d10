"""The machine a command runs on: device, threads, memory. Made once at the edge and handed down."""

import ctypes
import os
import platform
import sys
from dataclasses import dataclass

import torch

from regard.errors import ConfigError


@dataclass(frozen=True)
class Runtime:
    """Where tensors live and how many cores work on them."""

    device: torch.device
    threads: int


def prepare(device: str = "auto", threads: int | None = None) -> Runtime:
    """Choose the device, set the threads, and put the process into the state in which torch is fast on a CPU."""
    if threads is not None:
        torch.set_num_threads(threads)
    # Numbers near zero are computed in slow microcode: a fused AdamW step has been seen to take fifty times as long.
    torch.set_flush_denormal(True)
    _keep_memory()
    return Runtime(_device(device), torch.get_num_threads())


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {name!r} cannot be used here ({str(error).splitlines()[0]}); try cpu") from error
    return device


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
