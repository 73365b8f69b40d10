"""An accelerator to test with: tensors on it are kept apart from those of the host, and copies back are counted.

No GPU is needed. A tensor on it says that its device is `meta`, never the default, and has real numbers inside.
While `accelerator()` is active,

- a tensor made for that device, or moved to it, is on the accelerator; one made without a device is the host's;
- an operation on tensors of both fails, except where the host's have no dimensions, which torch accepts as scalars;
- an operation whose result the host must wait for (`.item()`, `.tolist()`, `if tensor:`, indexing by a mask, …) fails,
  unless the function that asks for it is among HOST_SYNCS.

The error names the line of regard that asked for the operation.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import regard
from tests.devices.host_syncs import HOST_SYNCS

DEVICE = torch.device("meta")
SOURCES = Path(regard.__file__).parent

aten = torch.ops.aten
# What the host must wait for on an accelerator: a number, or how many there are.
SYNCHRONIZING = {
    aten._local_scalar_dense.default,
    aten.equal.default,
    aten.is_nonzero.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
}
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}


class MixedDevicesError(Exception):
    """An operation on tensors of the accelerator and of the host."""


class HostSyncError(Exception):
    """The host waits for a number of the accelerator where it should not."""


class OnAccelerator(Tensor):
    """A tensor on the accelerator; `numbers` is what it has inside."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "OnAccelerator":
        return torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            layout=numbers.layout,
            device=DEVICE,
            requires_grad=numbers.requires_grad,
        )

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"OnAccelerator({self.numbers})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} outside of accelerator()")


class Accelerator(TorchDispatchMode):
    """Runs every operation where its tensors are."""

    def __init__(self, syncs: Mapping[tuple[str, str], str]) -> None:
        super().__init__()
        self.syncs = syncs
        self.used: dict[tuple[str, str], int] = {}  # how often each function of `syncs` waited

    @torch.inference_mode(False)  # a tensor made in inference mode cannot be wrapped
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        given = tree_flatten((args, kwargs))[0]
        tensors = [one for one in given if isinstance(one, Tensor)]
        there = [one for one in tensors if isinstance(one, OnAccelerator)]
        devices = [one for one in given if isinstance(one, torch.device)]
        moves = bool(devices)
        is_on = DEVICE in devices if moves else bool(there)
        if there:
            self._check(func, args, kwargs, tensors, leaves=moves and not is_on)
        elif not is_on:
            return func(*args, **kwargs)
        inside = {id(one.numbers): one for one in there}
        found = func(*tree_map(_numbers, args), **tree_map(_numbers, kwargs))
        if not is_on:
            return found
        return tree_map(lambda one: _wrapped(one, inside), found)

    def _check(self, func: Any, args: Any, kwargs: Any, tensors: list[Tensor], *, leaves: bool) -> None:
        assert all(isinstance(one, OnAccelerator) or not one.is_meta for one in tensors), f"{func} of lost numbers"
        mixed = [one for one in tensors if not isinstance(one, OnAccelerator) and one.dim()]
        if func in INDEXING:  # torch takes the host's indices, not its values
            mixed = [one for one in mixed if all(one is not index for index in args[1])]
        if mixed and func not in (aten.copy_.default, aten._to_copy.default):
            shapes = ", ".join(str(tuple(one.shape)) for one in mixed)
            raise MixedDevicesError(f"{func} takes a tensor of the host, {shapes}, at {_where()}")
        waits = leaves or func in SYNCHRONIZING
        waits |= func is aten.copy_.default and not isinstance(args[0], OnAccelerator)
        if func in INDEXING:
            waits |= any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1])
        if waits:
            file, function, line = _caller()
            if (file, function) not in self.syncs:
                raise HostSyncError(f"{func} makes the host wait, in {function} at {file}:{line}")
            self.used[file, function] = self.used.get((file, function), 0) + 1


class Conversions(TorchFunctionMode):
    """What torch does not send to a dispatch mode: tensors made of Python numbers, and lists made of tensors."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        if func is Tensor.new_tensor:
            return torch.tensor(*args[1:], **({"dtype": args[0].dtype} | kwargs)).to(args[0].device)
        if func in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(args[0], OnAccelerator):
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            index = tuple(torch.tensor(one, dtype=torch.long) if isinstance(one, list) else one for one in index)
            return func(args[0], index, *args[2:])
        if func is Tensor.tolist and isinstance(args[0], OnAccelerator):
            return args[0].cpu().tolist()
        return func(*args, **kwargs)


def _numbers(one: Any) -> Any:
    if isinstance(one, torch.device):
        return torch.device("cpu") if one == DEVICE else one
    return one.numbers if isinstance(one, OnAccelerator) else one


def _wrapped(one: Any, inside: Mapping[int, OnAccelerator]) -> Any:
    if not isinstance(one, Tensor):
        return one
    same = inside.get(id(one))  # in place
    return OnAccelerator(one) if same is None else same


def _caller() -> tuple[str, str, int]:
    """The innermost line of regard, or else of a test, that led here."""
    frame = sys._getframe(1)
    outside = ("", "", 0)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCES):
            return str(path.relative_to(SOURCES)), frame.f_code.co_qualname, frame.f_lineno
        if path.name.startswith("test_") and not outside[0]:
            outside = (path.name, frame.f_code.co_qualname, frame.f_lineno)
        frame = frame.f_back
    return outside


def _where() -> str:
    file, function, line = _caller()
    return f"{file}:{line}, in {function}"


@contextmanager
def accelerator(syncs: Mapping[tuple[str, str], str] = HOST_SYNCS) -> Iterator[Accelerator]:
    """Inside, the device `meta` is an accelerator."""
    with Accelerator(syncs) as mode, Conversions():
        yield mode


def to_host(found: Any) -> Any:
    """Results with their numbers, for a test to compare."""
    return tree_map(_numbers, found)
