"""What computes on this machine: `regard info --system`."""

import os
import platform
from typing import Any

import torch

from regard.ops import building
from regard.ops.library import origin, why_missing
from regard.runtime import DEVICES, find_device


def describe_system() -> dict[str, Any]:
    """The facts, as a user should give them with a report of a slow run."""
    missing = why_missing()
    has = set(building.processor().split())
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads used",
        "instructions": [name for name in sorted(building.AVX512 | {"asimd", "avx_vnni"}) if name in has],
        "kernels": "off: torch computes, slower" if missing else "on",
        "why": missing or origin(),
        "devices": [device for device in DEVICES if _is_there(device)],
        "device of --device auto": str(find_device("auto")),
    }


def _is_there(device: str) -> bool:
    return device == "cpu" or (getattr(torch, device, None) is not None and bool(getattr(torch, device).is_available()))
