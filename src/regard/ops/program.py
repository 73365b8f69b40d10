"""A decoding step as a program: a flat list of instructions over preallocated buffers, run by C in one call.

At batch 1 the Python between the operations of a step costs more than the operations. A `Program` is built once for a
model, instruction by instruction, and checks then that every buffer has room; `run` calls csrc/step.c. There is no
torch form: the model's own step is the definition, and the tests hold the two equal.

The rows of a run are tokens of any sequences: one of each when decoding, many of one when reading a prompt. A sequence
has a slot of the KV cache, where its keys and values stand by position.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.ops.activation import C_ACTIVATIONS, NO_ACTIVATION
from regard.ops.dispatch import check
from regard.ops.lazy_memory import lazy_zeros
from regard.ops.library import library
from regard.ops.packed import BLOCK, PackedMatrix

EMBED, PREPARE, LINEAR, ATTEND = range(4)  # as in csrc/step.c
NORMS = {None: 0, "rms": 1, "layer": 2}
GATED = 16
MAX_WANTED = 32
ROUNDED_BLOCK_BYTES = 48  # of 32 rounded activations
SCORES_MULTIPLE = 64  # room for scores in whole vectors

Weight = Tensor | PackedMatrix  # of a matrix (N, K)
_POINTERS = ("in", "weight", "bias", "residual", "panels", "out", "rounded", "keys", "values")


class _Instruction(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("op", "norm", "activation", "bits", "layout", "is_last")),
        *((name, ctypes.c_int64) for name in ("n", "k", "stride", "heads", "kv_heads", "width", "slots", "capacity")),
        *((name, ctypes.c_float) for name in ("epsilon", "scale")),
        *((name, ctypes.c_void_p) for name in (*_POINTERS, "cosine", "sine")),
    ]


_SIZES = ("rows", "wanted_rows", "vocab_size", "slots", "capacity", "max_rows", "max_wanted")


class _Step(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in _SIZES),
        *((name, ctypes.c_void_p) for name in ("ids", "slot_of", "positions", "wanted", "workspace", "scores")),
        ("scores_size", ctypes.c_int64),
    ]


@dataclass(frozen=True, eq=False)
class Rows:
    """A buffer (max_rows, width) that instructions write and read."""

    values: Tensor
    last: bool = False  # it has only the rows whose logits are wanted

    @property
    def width(self) -> int:
        return self.values.shape[1]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a product reads: rows in float32, and rounded for packed matrices."""

    rows: Rows
    rounded: Tensor
    instruction: Any  # that fills them


@dataclass(frozen=True)
class Norm:
    """RMS or layer norm before a product."""

    kind: str  # "rms" or "layer"
    weight: Tensor | None
    bias: Tensor | None
    epsilon: float


class Program:
    """Built by `embed`, `prepare`, `linear` and `attend`, in the order of the model's step, then `run`."""

    def __init__(self, max_rows: int, slots: int, capacity: int, *, max_wanted: int = MAX_WANTED) -> None:
        assert library() is not None, "there are no C kernels"
        self.max_rows, self.slots, self.capacity = max_rows, slots, capacity
        self.max_wanted = min(max_rows, max_wanted)  # rows of a run whose logits are computed
        self.caches: list[
            tuple[Tensor, Tensor]
        ] = []  # keys and values (slots, kv_heads, capacity, width) of each layer
        self._instructions: list[_Instruction] = []
        self._kept: list[Any] = []  # tensors whose addresses stand in the instructions
        self._vocab_size = 0
        self._workspace = 0
        self._compiled: Any = None
        self._prepared: dict[tuple[int, bool], tuple[Rows, Tensor]] = {}
        self._free: dict[tuple[int, bool], list[Rows]] = {}
        self._newest: dict[tuple[int, bool], Prepared] = {}

    # ------------------------------------------------ build

    def embed(self, table: Weight, scale: float = 1.0, positions: Tensor | None = None) -> Rows:
        """scale · table[ids] + positions[position_ids]."""
        self._vocab_size, width = table.shape
        if positions is not None and (positions.shape[1] != width or len(positions) < self.capacity):
            raise ValueError(f"positions are {tuple(positions.shape)}, wanted at least ({self.capacity}, {width})")
        out = self._new_rows(width, last=False)
        self._add(EMBED, k=width, scale=scale, bias=positions, out=out.values, **self._matrix(table))
        return out

    def prepare(
        self,
        rows: Rows,
        norm: Norm | None = None,
        activation: str | None = None,
        *,
        gated: bool = False,
        last: bool = False,
    ) -> Prepared:
        """f(norm(rows)); `gated`: f of the first half times the second. `last`: only rows whose logits are wanted."""
        if activation is not None and activation not in C_ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, wanted one of {', '.join(C_ACTIVATIONS)}")
        assert not rows.last, "these rows are the last already"
        width = rows.width // 2 if gated else rows.width
        for part in () if norm is None else (norm.weight, norm.bias):
            if part is not None and part.shape != (rows.width,):
                raise ValueError(f"a norm has {tuple(part.shape)} weights for rows of {rows.width}")
        out, rounded = self._buffers(width, last)
        instruction = self._add(
            PREPARE,
            k=width,
            norm=NORMS[None if norm is None else norm.kind],
            weight=None if norm is None else norm.weight,
            bias=None if norm is None else norm.bias,
            epsilon=0.0 if norm is None else norm.epsilon,
            activation=(NO_ACTIVATION if activation is None else C_ACTIVATIONS[activation]) | (GATED if gated else 0),
            is_last=last,
            out=out.values,
            **{"in": rows.values},
        )
        made = self._newest[width, last] = Prepared(out, rounded, instruction)
        return made

    def linear(
        self,
        x: Prepared,
        weights: Sequence[Weight],
        bias: Tensor | None = None,
        residual: Rows | None = None,
        *,
        in_place: bool = False,
    ) -> Rows:
        """x Wᵀ + bias + residual, for a W of one or more parts, one above the other.

        `in_place` writes it over the residual, which nothing may read after that.
        """
        count = sum(weight.shape[0] for weight in weights)
        assert self._newest[x.rows.width, x.rows.last] is x, "another product's input has been written over this one"
        if any(weight.shape[1] != x.rows.width for weight in weights) or (bias is not None and bias.shape != (count,)):
            shapes = ", ".join(str(tuple(weight.shape)) for weight in weights)
            raise ValueError(f"rows of {x.rows.width} numbers, weights {shapes}")
        if residual is not None and (residual.width != count or residual.last != x.rows.last):
            raise ValueError(f"a residual of {residual.width} numbers for {count} sums")
        out = residual if in_place and residual is not None else self._new_rows(count, x.rows.last)
        first = 0
        for weight in weights:
            if isinstance(weight, PackedMatrix):
                x.instruction.rounded = x.rounded.data_ptr()
            rows = slice(first, first + weight.shape[0])
            self._add(
                LINEAR,
                bias=None if bias is None else bias[rows],
                residual=None if residual is None else residual.values[:, rows],
                out=out.values[:, rows],
                stride=count,
                k=x.rows.width,
                is_last=x.rows.last,
                rounded=x.rounded,
                **{"in": x.rows.values},
                **self._matrix(weight),
            )
            first = rows.stop
        return out

    def attend(
        self, heads: Rows, num_heads: int, num_kv_heads: int, scale: float, angles: tuple[Tensor, Tensor] | None = None
    ) -> Rows:
        """Causal self-attention of queries, keys and values side by side; angles: cos and sin (capacity, K / 2)."""
        width, left = divmod(heads.width, num_heads + 2 * num_kv_heads)
        if left or num_heads % num_kv_heads:
            raise ValueError(f"{heads.width} numbers do not divide into {num_heads} + 2 · {num_kv_heads} heads")
        for part in angles or ():
            if part.shape[1] != width // 2 or len(part) < self.capacity or width % 2:
                raise ValueError(f"angles are {tuple(part.shape)}, wanted at least ({self.capacity}, {width // 2})")
        keys, values = (lazy_zeros(self.slots, num_kv_heads, self.capacity, width) for _ in range(2))
        self.caches.append((keys, values))
        out = self._new_rows(num_heads * width, last=False)
        cosine, sine = angles or (None, None)
        self._add(
            ATTEND,
            heads=num_heads,
            kv_heads=num_kv_heads,
            width=width,
            slots=self.slots,
            capacity=self.capacity,
            scale=scale,
            keys=keys,
            values=values,
            cosine=cosine,
            sine=sine,
            out=out.values,
            **{"in": heads.values},
        )
        return out

    def release(self, rows: Rows) -> None:
        """Nothing reads these rows any more: a later instruction may write over them."""
        self._free.setdefault((rows.width, rows.last), []).append(rows)

    def finish(self, hidden: Prepared, output: Sequence[Weight]) -> None:
        """The output layer; the program is complete."""
        assert hidden.rows.last, "logits are computed for wanted rows alone"
        self._hidden, self._num_before_output = hidden.rows.values, len(self._instructions)
        self._logits = self.linear(hidden, output).values
        self._compiled = (_Instruction * len(self._instructions))(*self._instructions)
        self._threads = torch.get_num_threads()
        self._work = torch.empty(self._workspace)
        self._scores_size = math.ceil(self.capacity / SCORES_MULTIPLE) * SCORES_MULTIPLE
        self._scores = torch.empty(self._threads * self._scores_size)

    # ------------------------------------------------ run

    def run(self, ids: Tensor, slot_of: Tensor, positions: Tensor, wanted: Tensor) -> Tensor:
        """Read tokens (R,) at positions (R,) of slots (R,): the logits (W, V) of the `wanted` rows.

        They are valid until the next run.
        """
        return self._run(self._logits, len(self._instructions), ids, slot_of, positions, wanted)

    def run_hidden(self, ids: Tensor, slot_of: Tensor, positions: Tensor, wanted: Tensor) -> Tensor:
        """`run` without the output layer: the hidden states (W, D) that it would read."""
        return self._run(self._hidden, self._num_before_output, ids, slot_of, positions, wanted)

    def _run(self, found: Tensor, count: int, *rows: Tensor) -> Tensor:
        ids, slot_of, positions, wanted = (part.to(device="cpu", dtype=torch.int64).contiguous() for part in rows)
        if not ids.shape == slot_of.shape == positions.shape or ids.dim() != 1 or wanted.dim() != 1:
            raise ValueError(f"ids, slots, positions, wanted are {', '.join(str(tuple(part.shape)) for part in rows)}")
        step = _Step(
            len(ids),
            len(wanted),
            self._vocab_size,
            self.slots,
            self.capacity,
            self.max_rows,
            self.max_wanted,
            ids.data_ptr(),
            slot_of.data_ptr(),
            positions.data_ptr(),
            wanted.data_ptr(),
            self._work.data_ptr(),
            self._scores.data_ptr(),
            self._scores_size,
        )
        c = library()
        assert c is not None
        check(c.run_step(self._compiled, count, ctypes.byref(step), self._threads))
        return found[: len(wanted)]

    # ------------------------------------------------ inside

    def _add(self, op: int, **fields: Any) -> _Instruction:
        made = _Instruction(op=op)
        for name, value in fields.items():
            if isinstance(value, Tensor):
                if not value.is_cpu or value.stride(-1) != 1:
                    raise ValueError(f"{name} is on {value.device}, wanted a tensor with contiguous rows on the CPU")
                self._kept.append(value)
                value = value.data_ptr()
            setattr(made, name, value)
        self._instructions.append(made)
        return made

    def _matrix(self, weight: Weight) -> dict[str, Any]:
        if isinstance(weight, PackedMatrix):
            return {"n": weight.shape[0], "panels": weight.panels, "bits": weight.bits, "layout": weight.layout}
        if weight.dtype is not torch.float32:
            raise ValueError(f"a weight is {weight.dtype}, wanted float32")
        found = library()
        assert found is not None
        room = found.linear_workspace(self.max_rows, weight.shape[1], torch.get_num_threads())
        self._workspace = max(self._workspace, room + self.max_rows * weight.shape[0])
        return {"n": weight.shape[0], "weight": weight.detach().contiguous()}

    def _new_rows(self, width: int, last: bool) -> Rows:
        if self._free.get((width, last)):
            return self._free[width, last].pop()
        return Rows(torch.zeros(self.max_wanted if last else self.max_rows, width), last)

    def _buffers(self, width: int, last: bool) -> tuple[Rows, Tensor]:
        """Shared by all products of a width: each reads them before the next writes."""
        if (width, last) not in self._prepared:
            size = (self.max_wanted if last else self.max_rows) * math.ceil(width / BLOCK) * ROUNDED_BLOCK_BYTES
            self._prepared[width, last] = (self._new_rows(width, last), torch.zeros(size, dtype=torch.uint8))
        return self._prepared[width, last]
