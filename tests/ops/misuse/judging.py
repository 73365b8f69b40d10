"""Right and wrong uses of an op, made from right ones by one change each, and the judgement of what came of it.

A use is survived if the op gives what its plain torch form gives, or refuses with an error of its contract: its own
ValueError or IndexError that says what is wanted, or, for other shapes, dtypes and devices, torch's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError

DTYPES = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)
FLOATS = (torch.float64, torch.float16, torch.bfloat16)
VALUES = (torch.nan, torch.inf, -torch.inf, 1e18, -1e-40)
EVERYWHERE = (torch.nan, torch.inf, -torch.inf, -10.0, 0.0)
OVERFLOWING = 3e38  # where sums overflow depends on their order: such results are not compared
INDICES = (-1, -100, -101, 1_000, 2**31 - 1, -(2**31))
REFUSALS = (RegardError, ValueError, IndexError, RuntimeError, TypeError, NotImplementedError)

Arguments = dict[str, Any]


class Subclass(Tensor):
    """A tensor that is not plain: its numbers need not be in memory."""


@dataclass(frozen=True)
class Op:
    """A public op and its plain torch form, both called with the same keywords.

    `uses` are right arguments, made anew for each call; the first one is misused. `settings` are further values of
    arguments that are no tensors. `tolerance` is relative to the largest number.
    """

    name: str
    call: Callable[..., Any]
    plain: Callable[..., Any]
    uses: Sequence[Callable[[], Arguments]]
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tolerance: float = 1e-5


@dataclass(frozen=True)
class Use:
    """One call of an op."""

    op: Op
    label: str
    arguments: Callable[[], Arguments]
    is_right: bool = False
    in_inference_mode: bool = False
    overflows: bool = False

    @property
    def name(self) -> str:
        return f"{self.op.name}: {self.label}"


def uses_of(op: Op) -> Iterator[Use]:
    """All right uses, and the first one with every change."""
    for number, arguments in enumerate(op.uses):
        yield Use(op, f"right use {number}", arguments, is_right=True)
        yield Use(op, f"right use {number} in inference mode", arguments, in_inference_mode=True)
    first = op.uses[0]
    for name, value in first().items():
        if isinstance(value, Tensor):
            for label, change in changes_of(value):
                yield Use(op, f"{name} {label}", _changed(first, [name], change))
    yield from _joint_changes(op)
    for name, values in op.settings.items():
        for value in values:
            yield Use(op, f"{name}={value!r}", lambda name=name, value=value: first() | {name: value})


def _joint_changes(op: Op) -> Iterator[Use]:
    """All floating arguments changed at once."""
    first = op.uses[0]
    tensors = [name for name, value in first().items() if isinstance(value, Tensor) and value.is_floating_point()]
    for label, change in changes_of_all():
        yield Use(op, f"all {label}", _changed(first, tensors, change), in_inference_mode="inference" in label)
    for name in tensors:
        change = _changed(first, [name], lambda one: torch.full_like(one, OVERFLOWING))
        yield Use(op, f"{name} full of {OVERFLOWING}", change, overflows=True)


def _changed(make: Callable[[], Arguments], names: Sequence[str], change: Callable[[Tensor], Tensor]) -> Any:
    def changed() -> Arguments:
        arguments = make()
        return arguments | {name: change(arguments[name]) for name in names}

    return changed


Change = tuple[str, Callable[[Tensor], Tensor]]


def changes_of(tensor: Tensor) -> Iterator[Change]:
    """Changes of one argument: dtype, memory layout, shape, numbers."""
    for dtype in DTYPES:
        if dtype is not tensor.dtype:
            yield f"as {dtype}", lambda one, dtype=dtype: one.to(dtype)
    yield from layouts()
    for dimension in range(tensor.dim()):
        size = tensor.shape[dimension]
        for wanted in (0, 1, size - 1):
            yield (
                f"cut to {wanted} in dimension {dimension}",
                lambda one, at=dimension, wanted=wanted: one.narrow(at, 0, wanted),
            )
        yield f"one more in dimension {dimension}", lambda one, at=dimension: torch.cat([one, one.narrow(at, 0, 1)], at)
    yield "of one dimension less", lambda one: one[0]
    yield "of one dimension more", lambda one: one[None]
    yield "of one number", lambda one: one.flatten()[0]
    yield "flattened", lambda one: one.flatten()
    indices = (True, False) if tensor.dtype is torch.bool else INDICES
    for value in VALUES if tensor.is_floating_point() else indices:
        yield f"with {value} at the end", lambda one, value=value: _put(one, value)
    for value in EVERYWHERE if tensor.is_floating_point() else indices:
        yield f"full of {value}", lambda one, value=value: torch.tensor(value).to(one.dtype).repeat(one.shape)
    yield "on the meta device", lambda one: one.to("meta")


def layouts() -> Iterator[Change]:
    """The same numbers elsewhere in memory, expanded or transposed ones, and tensors that are not plain."""
    yield "in columns", lambda one: one.transpose(0, -1).contiguous().transpose(0, -1)
    yield "transposed", lambda one: one.transpose(0, -1)
    yield "with gaps", lambda one: torch.stack([one, one], -1)[..., 0]
    yield "in every second row", lambda one: torch.cat([one, one], -1)[..., : one.shape[-1]]
    yield "at an odd address", lambda one: torch.cat([one.flatten()[:1], one.flatten()])[1:].view(one.shape)
    yield "expanded", lambda one: one[:1].expand_as(one)
    yield "flipped", lambda one: one.flip(0)
    yield "negated as a view", lambda one: torch.complex(one.float(), -one.float()).conj().imag
    yield "sparse", lambda one: one.to_sparse()
    yield "of a subclass", lambda one: one.as_subclass(Subclass)


def changes_of_all() -> Iterator[Change]:
    """Changes of all arguments at once."""
    for dtype in FLOATS:
        yield f"as {dtype}", lambda one, dtype=dtype: one.to(dtype)
    yield "requiring gradients", lambda one: one.detach().requires_grad_()
    yield "requiring gradients in inference mode", lambda one: one.detach().requires_grad_()
    yield "on the meta device", lambda one: one.to("meta")
    yield "in columns", lambda one: one.transpose(0, -1).contiguous().transpose(0, -1)
    yield "of a subclass", lambda one: one.as_subclass(Subclass)
    for value in EVERYWHERE:
        yield f"full of {value}", lambda one, value=value: torch.full_like(one, value)


def _put(tensor: Tensor, value: float) -> Tensor:
    changed = tensor.clone()
    changed[(-1,) * tensor.dim()] = torch.tensor(value).to(tensor.dtype)
    return changed


# ------------------------------------------------ the judgement


def fault_of(use: Use) -> str | None:
    """What is wrong with what the op does in this use; None if it is survived."""
    with torch.inference_mode() if use.in_inference_mode else nullcontext():
        wanted, refused = _attempt(use.op.plain, use.arguments)
        if _has_several_devices(use.arguments()):  # torch computes with a meta tensor as if it had numbers
            wanted, refused = None, ValueError("several devices")
        found, error = _attempt(use.op.call, use.arguments)
    if use.is_right and (error or refused):
        return f"a right use raised {error or refused!r}"
    if error is None:
        if refused is not None and not (isinstance(found, Tensor) and found.is_meta):
            return f"gave a result; the plain form raises {refused!r:.200}"
        return None if use.overflows or refused else difference(found, wanted, use.op.tolerance)
    if not isinstance(error, REFUSALS):
        return f"raised {error!r:.200}, which is no error of its contract"
    if refused is None and "want" not in str(error) and _facts(use.arguments()) == _facts(use.op.uses[0]()):
        return f"raised {error!r:.200}; the plain form gives a result"
    return None


def _has_several_devices(arguments: Arguments) -> bool:
    return len({part.device for part in arguments.values() if isinstance(part, Tensor)}) > 1


def _facts(arguments: Arguments) -> list[Any]:
    """What a kernel must agree with; equal ones differ in numbers and strides alone."""
    return [
        (part.shape, part.dtype, part.device, part.layout) if isinstance(part, Tensor) else None
        for part in arguments.values()
    ]


def _attempt(call: Callable[..., Any], make: Callable[[], Arguments]) -> tuple[Any, Exception | None]:
    arguments = make()
    try:
        return call(**arguments), None
    except Exception as error:
        return None, error


def difference(found: Any, wanted: Any, tolerance: float) -> str | None:
    """How two results differ: in shape, dtype or device, in where they are finite, or by more than `tolerance`."""
    if isinstance(wanted, tuple):
        if not isinstance(found, tuple) or len(found) != len(wanted):
            return f"gave {type(found)}, wanted {len(wanted)} values"
        found_parts = (difference(one, other, tolerance) for one, other in zip(found, wanted, strict=True))
        return next((part for part in found_parts if part), None)
    if not isinstance(wanted, Tensor):
        return None if found == wanted else f"gave {found!r}, wanted {wanted!r}"
    facts = [(part.shape, part.dtype, part.device) for part in (found, wanted)]
    if facts[0] != facts[1]:
        return f"gave {facts[0]}, wanted {facts[1]}"
    if wanted.is_meta or not wanted.numel():
        return None
    found, wanted = (part.detach().to_dense().as_subclass(Tensor) for part in (found, wanted))
    if not wanted.is_floating_point():
        return None if torch.equal(found, wanted) else f"gave {found.tolist()}, wanted {wanted.tolist()}"
    return _numeric_difference(found, wanted, tolerance)


def _numeric_difference(found: Tensor, wanted: Tensor, tolerance: float) -> str | None:
    finite = wanted.isfinite()
    if not torch.equal(found.isfinite(), finite):
        return f"{int((found.isfinite() != finite).sum())} numbers are finite in one form only"
    if not finite.any():
        return None
    one, other = found[finite].double(), wanted[finite].double()
    allowed = max(tolerance, 8 * torch.finfo(wanted.dtype).eps) * other.abs().max().clamp(min=1)
    worst = (one - other).abs().max()
    return None if worst <= allowed else f"differs by {worst:.3g}, allowed is {allowed:.3g}"
