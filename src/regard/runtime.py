"""Where and how this process computes: device, dtype, threads, rank. Decided once at the edge, and handed down.

A command calls `prepare`, which configures torch and returns a `Runtime`; whatever computes takes that value as an
argument. Nothing below asks for a device of its own: models are built on the host and moved, batches are moved by
`Runtime.move`, and every other tensor is made on the device of its inputs.
"""

import ctypes
import os
import platform
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.errors import ConfigError

DEVICES = ("cpu", "cuda", "mps", "xpu")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HOST = torch.device("cpu")

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Runtime:
    """Where one process computes, in what dtype, and which of how many processes it is."""

    device: torch.device = HOST
    dtype: torch.dtype = torch.float32  # of matrix products and convolutions; weights and losses stay float32
    threads: int = field(default_factory=torch.get_num_threads)
    rank: int = 0  # of all processes, as torchrun counts them
    world_size: int = 1
    local_rank: int = 0  # of the processes of this host
    local_world_size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes the logs, the checkpoints and the progress."""
        return self.rank == 0

    @property
    def prefetches(self) -> bool:
        """Whether the next batch is prepared while this one is computed: the CPU has other work than computing."""
        return self.device.type != "cpu"

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def notes(self) -> list[str]:
        """What a user should know of this choice, a line each."""
        if self.device.type == "cpu" and self.dtype is not torch.float32:
            return [f"{self.dtype_name} on a CPU: the C kernels are for float32, so torch's kernels compute"]
        if self.device.type == "cuda" and self.dtype is torch.float32:
            return ["float32 on cuda is computed without TF32; --dtype bfloat16 is several times faster"]
        return []

    def autocast(self) -> AbstractContextManager[Any]:
        """Mixed precision: inside, torch computes products in `dtype`, and norms, softmax and losses in float32."""
        if self.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.dtype)

    def move(self, batch: Batch) -> Batch:
        """The same batch, or tensor, with all its tensors on the device.

        For CUDA through pinned memory, so that the copy runs beside the computation.
        """
        if self.device == HOST:
            return batch
        if isinstance(batch, Tensor):
            return self._move(batch)  # type: ignore[return-value]
        assert is_dataclass(batch), f"a batch is a dataclass, got {type(batch).__name__}"
        given = {one.name: getattr(batch, one.name) for one in fields(batch)}
        moved = {
            name: self.move(value) for name, value in given.items() if isinstance(value, Tensor) or is_dataclass(value)
        }
        found: Batch = replace(batch, **moved)  # type: ignore[type-var]
        return found

    def _move(self, tensor: Tensor) -> Tensor:
        if self.device.type == "cuda" and tensor.device == HOST:
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)


def runtime_of(model: nn.Module) -> Runtime:
    """Where a model that was loaded computes: for what is given to it."""
    tensor = next(chain(model.parameters(), model.buffers()), None)
    return Runtime(HOST if tensor is None else tensor.device)


def prepare(
    device: str = "auto", dtype: str = "float32", threads: int | None = None, *, precision: str = "float32"
) -> Runtime:
    """Configure the process and return where it computes; called once by each command.

    `device` is auto, cpu, cuda, cuda:1, mps or xpu: auto is the first accelerator of this machine, else the CPU. Under
    torchrun each process takes the device of its local rank. With `precision` int8 or int4, whose kernels are for the
    CPU, auto is the CPU. ConfigError: the device is not there, or cannot compute so.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    # Denormal numbers are computed in slow microcode: a fused AdamW step took fifty times as long.
    torch.set_flush_denormal(True)
    _keep_memory()
    names = ("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1)
    rank, world_size, local_rank, local_world_size = (_from_torchrun(name, alone) for name, alone in names)
    is_quantized = precision in ("int8", "int4")
    found = find_device("cpu" if is_quantized and device == "auto" else device, local_rank)
    if is_quantized and (found != HOST or dtype != "float32"):
        raise ConfigError(
            f"--precision {precision} --device {device} --dtype {dtype}: {precision} computes on the CPU and beside "
            "float32; leave --device and --dtype out"
        )
    runtime = Runtime(
        found, find_dtype(dtype, found), torch.get_num_threads(), rank, world_size, local_rank, local_world_size
    )
    if found != HOST:
        _prepare_accelerator(found)
    return runtime


def _prepare_accelerator(device: torch.device) -> None:
    """The same numbers each time: deterministic kernels where torch has them, and float32 without TF32."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS when it starts
    torch.use_deterministic_algorithms(True, warn_only=True)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False


def find_device(name: str, local_rank: int = 0) -> torch.device:
    """The device of that name; without a number, that of the local rank. ConfigError: there is none."""
    kind, _, number = name.partition(":")
    if name == "auto":
        found = torch.accelerator.current_accelerator(check_available=True)
        kind = "cpu" if found is None else found.type
    if kind not in DEVICES or (number and not number.isdecimal()) or (kind == "cpu" and number):
        raise ConfigError(f"--device {name}: wanted auto, cpu, cuda, cuda:1, mps or xpu")
    if kind == "cpu":
        return HOST
    module = getattr(torch, kind)
    there = module.device_count() if module.is_available() else 0
    index = int(number) if number else local_rank
    if not there:
        raise ConfigError(f"--device {name}: there is no {kind} device here; {_others()}")
    if index >= there:
        raise ConfigError(f"--device {kind}:{index}: there are {there} here, from {kind}:0 to {kind}:{there - 1}")
    return torch.device(kind, index)


def find_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of that name. ConfigError: there is none, or the device cannot compute in it."""
    if name not in DTYPES:
        raise ConfigError(f"--dtype {name}: wanted {', '.join(DTYPES)}")
    dtype = DTYPES[name]
    if (
        dtype is torch.bfloat16
        and device.type == "cuda"
        and not torch.cuda.is_bf16_supported(including_emulation=False)
    ):
        raise ConfigError(f"--dtype bfloat16: {torch.cuda.get_device_name(device)} cannot compute in it; try float16")
    return dtype


def _others() -> str:
    """What `--device` may be on this machine."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return "use --device cpu" if found is None else f"use --device {found.type} or cpu"


def _from_torchrun(name: str, alone: int) -> int:
    """A number that torchrun sets; `alone` if this process is not one of torchrun's."""
    value = os.environ.get(name, "")
    if value and not value.isdecimal():
        raise ConfigError(f"{name}={value}: wanted the number that torchrun sets; unset it to run one process")
    return int(value) if value else alone


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


def matrix_limit(runtime: Runtime) -> float:
    """FLOP/s of a large matrix product on this device, the reference for the utilization of a training step.

    In float32 on a CPU, which has no faster dtype or emulates it.
    """
    on_host = runtime.device == HOST
    size, dtype = (1024, torch.float32) if on_host else (4096, runtime.dtype)
    one, other, product = (torch.zeros(size, size, device=runtime.device, dtype=dtype) for _ in range(3))
    seconds = []
    for _ in range(8):
        start = time.perf_counter()
        torch.mm(one, other, out=product)
        if not on_host:
            torch.accelerator.synchronize(runtime.device)
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
