"""Will a run fit on so many accelerators, and how long does a step take: `regard cost RECIPE --world N`.

Memory is simulated (`training_memory`). Communication is by formula, for P parameters and N ranks, in bytes that a rank
sends in a step: DDP sums the gradients in a ring, 2 (N-1)/N · 4 P; FSDP gathers the weights twice and sums the
gradients in float32, (N-1)/N · (2 w + 4) P with w bytes a weight; HSDP does that within a host, and sums the shards of
the gradient between hosts. Time is arithmetic by the peak of the device and the utilization assumed, or communication
by the link, whichever is longer: they overlap.
"""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from regard.config import override
from regard.errors import ConfigError
from regard.experiments.training_memory import Memory, Setup, training_memory
from regard.models import kind_of, model_class
from regard.training.parallel import Mode

UTILIZATION = 0.4  # share of the peak that training reaches (model FLOPs utilization), assumed
GIB = 2**30
SIZE = "model.size="


@dataclass(frozen=True)
class Device:
    """An accelerator by its data sheet: memory, peak of dense products, and what a rank sends a second."""

    name: str
    gigabytes: float
    teraflops: float  # bfloat16, or float16 where it has none
    teraflops_float32: float
    link: float  # GB/s within a host, one way
    network: float  # GB/s between hosts, one way


DEVICES = {
    "v100": Device("NVIDIA V100 SXM2 32 GB", 32, 125, 15.7, 150, 12.5),
    "a100": Device("NVIDIA A100 SXM 80 GB", 80, 312, 19.5, 300, 25),
    "h100": Device("NVIDIA H100 SXM 80 GB", 80, 989, 67, 450, 50),
    "rtx4090": Device("NVIDIA RTX 4090 24 GB", 24, 165, 82.6, 25, 12.5),
    "mi300x": Device("AMD MI300X 192 GB", 192, 1307, 163.4, 448, 50),
}


@dataclass(frozen=True)
class Row:
    """One way to train the model: gigabytes (GiB) of a rank, and seconds of a step."""

    world: int
    parallel: str
    activation_checkpointing: bool
    parameters: float
    gradients: float
    optimizer: float
    activations: float
    peak: float
    fits: bool
    communication: float
    seconds: float
    tokens_per_second: float  # of all ranks


@dataclass(frozen=True)
class Request:
    """What is planned."""

    config: Any
    worlds: Sequence[int]
    device: Device
    dtype: torch.dtype
    rows: int  # of a rank
    tokens: int
    ranks_per_host: int


def plan(request: Request) -> list[Row]:
    """Each way to train, for each number of ranks."""
    rows: list[Row] = []
    seen: dict[tuple[Any, ...], Memory] = {}
    for world in request.worlds:
        for mode in modes(world, request.ranks_per_host):
            for is_checkpointed in (False, True):
                local = min(world, request.ranks_per_host)
                setup = Setup(mode, world, local, is_checkpointed, request.dtype, request.rows, request.tokens)
                # A rank of DDP takes the same memory whatever their number.
                key = (mode, is_checkpointed, None if mode == "ddp" else world)
                if key not in seen:
                    seen[key] = training_memory(request.config, setup)
                rows.append(_row(request, setup, seen[key]))
    return rows


def modes(world: int, ranks_per_host: int) -> tuple[Mode, ...]:
    return ("ddp", "fsdp", "hsdp") if world > ranks_per_host and world % ranks_per_host == 0 else ("ddp", "fsdp")


def _row(request: Request, setup: Setup, memory: Memory) -> Row:
    device, world = request.device, setup.world_size
    parts = {name: value / GIB for name, value in asdict(memory).items()}
    numbers = parameters_of(request.config)
    seconds = _computation(request, setup), *_communication(numbers, setup, device)
    step = max(seconds[0], seconds[1] + seconds[2])
    sent = sum(bytes_sent(numbers, setup)) / 1e9
    tokens = world * setup.rows * setup.tokens
    fits = memory.peak <= device.gigabytes * 1e9
    return Row(
        world,
        setup.mode,
        setup.activation_checkpointing,
        **parts,
        fits=fits,
        communication=sent,
        seconds=step,
        tokens_per_second=tokens / step,
    )


def bytes_sent(parameters: int, setup: Setup) -> tuple[float, float]:
    """What a rank sends in a step: within its host, and between hosts, which is where a ring of all is slowest."""
    world, local = setup.world_size, setup.local_world_size
    width = 4 if setup.dtype is torch.float32 else 2
    if setup.mode == "hsdp":
        within = (local - 1) / local * (2 * width + 4) * parameters
        hosts = world // local
        return within, 2 * (hosts - 1) / hosts * 4 * parameters / local
    factor = 2 * 4 if setup.mode == "ddp" else 2 * width + 4
    sent = (world - 1) / world * factor * parameters
    return (sent, 0.0) if world <= local else (0.0, sent)


def _communication(parameters: int, setup: Setup, device: Device) -> tuple[float, float]:
    within, between = bytes_sent(parameters, setup)
    return within / (device.link * 1e9), between / (device.network * 1e9)


def _computation(request: Request, setup: Setup) -> float:
    """Seconds of the products: forward, twice that backward, and forward again with activation checkpointing."""
    passes = 4 if setup.activation_checkpointing else 3
    flops = 2 * passes * setup.rows * _multiply_adds(request.config, setup.tokens)
    peak = request.device.teraflops_float32 if setup.dtype is torch.float32 else request.device.teraflops
    return flops / (peak * 1e12 * UTILIZATION)


def _multiply_adds(config: Any, tokens: int) -> float:
    lengths = {"tokens": tokens, "source": tokens, "target": tokens}
    taken = inspect.signature(config.flops).parameters
    found: float = config.flops(**{name: length for name, length in lengths.items() if name in taken}).multiply_adds
    return found


def parameters_of(config: Any) -> int:
    """Numbers of a model, which is built without memory."""
    with torch.device("meta"):
        model = model_class(kind_of(config))(config)
    return sum(parameter.numel() for parameter in model.parameters())


def planned_config(run: Any, assignments: Sequence[str], listed_by: str) -> Any:
    """The model config of a recipe's settings, with these changes; `model.size=gpt2-xl` is a published size."""
    sizes = getattr(sys.modules[type(run.model).__module__], "SIZES", {})
    for one in (one for one in assignments if one.startswith(SIZE)):
        if (name := one.removeprefix(SIZE)) not in sizes:
            raise ConfigError(f"{one}: wanted {', '.join(sizes) or 'another setting: this model has no sizes'}")
        run = run.model_copy(update={"model": sizes[name]})
    return override(run, [one for one in assignments if not one.startswith(SIZE)], listed_by).model


def device_named(name: str) -> Device:
    if name not in DEVICES:
        raise ConfigError(f"--device {name}: wanted {', '.join(DEVICES)}")
    return DEVICES[name]


def worlds_of(text: str) -> list[int]:
    """Numbers of ranks, such as "8,64"."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--world {text}: wanted numbers of ranks, such as 8 or 8,64,1024")
    return [int(part) for part in parts]


def table(rows: Sequence[Row], device: Device) -> list[list[str]]:
    """The rows as they are shown, under their names."""
    names = ["ranks", "parallel", "weights", "gradients", "optimizer", "activations", "peak GiB", "fits", "sent GB"]
    cells = [[*names, "s a step", "tokens/s"]]
    for row in rows:
        way = f"{row.parallel}{', checkpointing' if row.activation_checkpointing else ''}"
        parts = (row.parameters, row.gradients, row.optimizer, row.activations, row.peak)
        fits = "yes" if row.fits else f"no: {device.gigabytes:g} GB"
        speed = [f"{row.communication:.1f}", f"{row.seconds:.3f}", f"{row.tokens_per_second:,.0f}"]
        cells.append([f"{row.world:,}", way, *(f"{part:.2f}" for part in parts), fits, *speed])
    return cells


def assumptions(request: Request) -> str:
    """What the times rest on."""
    device, is_full = request.device, request.dtype is torch.float32
    peak = device.teraflops_float32 if is_full else device.teraflops
    return (
        f"{request.rows} rows of {request.tokens:,} tokens a rank, {request.ranks_per_host} ranks a host; "
        f"{device.name}: "
        f"{peak:g} TFLOP/s at {UTILIZATION:.0%} utilization (assumed), {device.link:g} GB/s within a host, "
        f"{device.network:g} GB/s between hosts; memory is simulated, of tensors alone: leave a tenth for the rest"
    )
