"""The processes that torchrun starts for one command: how they take turns, add up numbers, and fail together.

All of it does nothing in a process that torchrun did not start. Two ways lead from process to process: the store of
torchrun (keys and values), which works from the first line on and while a computation hangs, and the process group of
torch.distributed (gloo between CPUs, nccl between GPUs), which `start` makes.

When a process fails, it says so in the store. Who waits there for a turn, or is thrown out of a computation because the
other side is gone, finds it. All end with the exit code of the failure, and its line is printed once.
"""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from regard.errors import ConfigError, OtherRankError, RegardError, TrainingError
from regard.runtime import Runtime

BACKENDS = {"cpu": "gloo", "cuda": "cpu:gloo,cuda:nccl", "xpu": "cpu:gloo,xpu:xccl"}
STORE_SECONDS = 60.0  # for the store to answer
FAREWELL_SECONDS = 5.0  # for all processes to say that they fail, too
POLL_SECONDS = 0.02

T = TypeVar("T")

_turns: Counter[str] = Counter()  # how often each was taken: all processes take the same turns in the same order


def is_one_of_many() -> bool:
    """Whether torchrun started this process beside others."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1") and "RANK" in os.environ


def is_main() -> bool:
    """Whether this process prints, and writes files."""
    return not is_one_of_many() or os.environ["RANK"] == "0"


def rank_and_world_size() -> tuple[int, int]:
    return (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if is_one_of_many() else (0, 1)


# ------------------------------------------------ the process group


def start(runtime: Runtime, backend: str = "auto", seconds: float = 600.0) -> None:
    """Make the process group, if torchrun started this process; a computation that waits longer fails.

    ConfigError: there is no such backend, or it is not part of this torch.
    """
    if "RANK" not in os.environ or dist.is_initialized():
        return
    name = _backend(runtime.device.type, backend)
    _check_backend(name)
    try:
        dist.init_process_group(
            name,
            store=_store() if runtime.world_size > 1 else dist.HashStore(),
            rank=runtime.rank,
            world_size=runtime.world_size,
            timeout=timedelta(seconds=seconds),
        )
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"the processes cannot reach each other by {name}: {_first_line(error)}") from error


def stop() -> None:
    """End the process group, so that who waits for this process is told."""
    if dist.is_initialized():
        with suppress(RuntimeError):
            dist.destroy_process_group()


def _backend(device: str, name: str) -> str:
    """What torch is asked for: numbers on the host are added up by gloo, whatever exchanges those of the device."""
    if name == "auto":
        return BACKENDS.get(device, "gloo")
    return f"cpu:gloo,{device}:{name}" if device != "cpu" and name in ("nccl", "xccl") else name


def _check_backend(name: str) -> None:
    here = [one for one in ("gloo", "nccl", "xccl", "mpi", "ucc") if dist.is_backend_available(one)]
    for one in name.split(","):
        if (kind := one.rpartition(":")[2]) not in here:
            raise ConfigError(
                f"training.backend={kind}: this torch has {', '.join(here)}; training.backend=auto chooses"
            )


def total(values: Sequence[float], runtime: Runtime) -> list[float]:
    """The sums over all processes, in double precision."""
    if runtime.world_size == 1:
        return list(values)
    found = torch.tensor(values, dtype=torch.float64)
    with failures_named(runtime):
        dist.all_reduce(found)
    summed: list[float] = found.tolist()
    return summed


def gather(value: Any, runtime: Runtime) -> list[Any]:
    """The JSON values of all processes, by rank, in each of them."""
    if runtime.world_size == 1:
        return [value]
    data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
    lengths = [
        int(one)
        for one in total([float(rank == runtime.rank) * len(data) for rank in range(runtime.world_size)], runtime)
    ]
    buffers = [torch.empty(max(lengths), dtype=torch.uint8) for _ in lengths]
    padded = torch.zeros(max(lengths), dtype=torch.uint8)
    padded[: len(data)] = data
    with failures_named(runtime):
        dist.all_gather(buffers, padded)
    return [json.loads(bytes(buffer[:length].numpy())) for buffer, length in zip(buffers, lengths, strict=True)]


# ------------------------------------------------ turns, by the store


@contextmanager
def main_first(name: str) -> Iterator[None]:
    """The block runs in rank 0, and when that is done in the others: what it writes, they find.

    OtherRankError: rank 0 has failed.
    """
    if not is_one_of_many():
        yield
        return
    _turns[name] += 1
    key = f"{name}/{_turns[name]}"
    if is_main():
        yield
        _store().set(key, "done")
    else:
        _wait(key)
        yield


def tell(name: str, make: Callable[[], T]) -> T:
    """What `make` returns in rank 0, a JSON value, in every process."""
    if not is_one_of_many():
        return make()
    _turns[name] += 1
    key = f"{name}/{_turns[name]}"
    if is_main():
        value = make()
        _store().set(key, json.dumps(value))
        return value
    _wait(key)
    found: T = json.loads(_store().get(key))
    return found


def _wait(key: str) -> None:
    store, (_, world_size) = _store(), rank_and_world_size()
    while not store.check([key]):
        _raise_failure_of_another(store, world_size)
        time.sleep(POLL_SECONDS)


@cache
def _store() -> dist.Store:
    """The store of this start of the processes; a restart after a fault has another."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    rank, world_size = rank_and_world_size()
    has_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = dist.TCPStore(
        host, port, world_size, is_master=not has_agent and rank == 0, timeout=timedelta(seconds=STORE_SECONDS)
    )
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"regard/{start}", store)


# ------------------------------------------------ failing together


@contextmanager
def failures_named(runtime: Runtime) -> Iterator[None]:
    """An error of torch.distributed inside the block becomes OtherRankError, or an error with the ranks that hang."""
    try:
        yield
    except RuntimeError as error:
        if runtime.world_size == 1 or not _is_of_distributed(error):
            raise
        raise _explained(runtime, error) from error


def _is_of_distributed(error: RuntimeError) -> bool:
    text = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "nccl", "xccl", "processgroup"))


def _explained(runtime: Runtime, error: RuntimeError) -> RegardError:
    """Why a computation of all processes failed: one has said so in the store, or some answer no more."""
    store = _store()
    store.set(f"thrown/{runtime.rank}", "out")
    waits_until = time.monotonic() + FAREWELL_SECONDS
    silent = set(range(runtime.world_size))
    while silent and time.monotonic() < waits_until:
        with suppress(OtherRankError):
            _raise_failure_of_another(store, runtime.world_size)
            silent = {rank for rank in silent if not store.check([f"thrown/{rank}"])}
            time.sleep(POLL_SECONDS)
            continue
        return _failure_of_another(store, runtime.world_size)
    if not silent:
        return TrainingError(f"the processes lost each other: {_first_line(error)}; the same command resumes the run")
    named = ", ".join(f"rank {rank}" for rank in sorted(silent))
    is_one = len(silent) == 1
    return TrainingError(
        f"{named} {'does' if is_one else 'do'} not answer: {'it hangs or has' if is_one else 'they hang or have'} been "
        f"killed ({_first_line(error)}); the same command resumes the run"
    )


def _raise_failure_of_another(store: dist.Store, world_size: int) -> None:
    for rank in range(world_size):
        if store.check([f"failed/{rank}"]):
            raise _failure(store, rank)


def _failure_of_another(store: dist.Store, world_size: int) -> RegardError:
    try:
        _raise_failure_of_another(store, world_size)
    except OtherRankError as error:
        return error
    raise AssertionError("a failure that was in the store is gone")


def _failure(store: dist.Store, rank: int) -> OtherRankError:
    return OtherRankError(rank, json.loads(store.get(f"failed/{rank}"))["exit_code"])


def fail_together(message: str, exit_code: int) -> list[str]:
    """Called by a process that ends with an error: the lines that it prints.

    It waits until the others end, too, a few seconds at most. Each different line is printed once, by the lowest rank
    that has it; a line that rank 0 does not have begins with the rank.
    """
    rank, world_size = rank_and_world_size()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun sends it as soon as one has left; all leave by themselves
    try:
        store = _store()
        store.set(f"failed/{rank}", json.dumps({"message": message, "exit_code": exit_code}))
        stop()
        waits_until = time.monotonic() + FAREWELL_SECONDS
        others = [f"failed/{one}" for one in range(world_size)]
        while not store.check(others) and time.monotonic() < waits_until:
            time.sleep(POLL_SECONDS)
        before = [json.loads(store.get(key))["message"] for key in others[:rank] if store.check([key])]
        _say_goodbye(store, rank, world_size)
    except (RuntimeError, KeyError, ValueError, OSError):  # no store, or it is gone: say it oneself
        before = []
    if not message or message in before:
        return []
    return [message if rank == 0 else f"rank {rank}: {message}"]


def _say_goodbye(store: dist.Store, rank: int, world_size: int) -> None:
    """Leave together: torchrun ends those that remain as soon as one has left."""
    store.set(f"gone/{rank}", "")
    waits_until = time.monotonic() + FAREWELL_SECONDS
    there = [f"gone/{one}" for one in range(world_size) if store.check([f"failed/{one}"])]
    while not store.check(there) and time.monotonic() < waits_until:
        time.sleep(POLL_SECONDS)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
