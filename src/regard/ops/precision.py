"""What runs in float32 inside autocast."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor


def is_autocast(device: torch.device) -> bool:
    """Whether products on this device are computed in a shorter dtype here."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def in_float32(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method without autocast, its tensors in float32: for a recurrence, where rounding adds up over the steps."""

    @wraps(method)
    def run(self: Any, *given: Any) -> Any:
        if not any(is_autocast(one.device) for one in given if isinstance(one, Tensor)):
            return method(self, *given)
        device = next(one.device for one in given if isinstance(one, Tensor))
        with torch.autocast(device.type, enabled=False):
            return method(self, *map(_to_float32, given))

    return run


def _to_float32(one: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(map(_to_float32, one))
    return one.float() if isinstance(one, Tensor) and one.is_floating_point() else one
