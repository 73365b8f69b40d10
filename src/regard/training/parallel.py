"""Training by several processes, with DDP or FSDP2 of torch.distributed, applied from outside.

All processes plan the same batches, a pure function of (seed, epoch, index); each computes its share of the rows, and
the gradients are summed. So the global batch, its order and its loss do not depend on how many there are, and each
sample is trained on once an epoch. Dropout draws for a row what it would draw in one process (`ops.dropout`).

    ddp     each process has the whole model; gradients are summed while the backward pass runs (Li 2020)
    fsdp    weights, gradients and optimizer state are sharded, block by block (Zhao 2023)
    hsdp    sharded within a host, replicated between hosts
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard import processes
from regard.data.batches import count_rows, take_rows
from regard.errors import ConfigError
from regard.ops.dropout import Rows, rows_of_batch
from regard.runtime import Runtime
from regard.training.validation import evaluation_mode

Mode = Literal["ddp", "fsdp", "hsdp"]
PROBED_BATCHES = 8  # looked at before the first step: do they have rows for all processes?

Position = TypeVar("Position")


class Task(Protocol):
    """What is needed of a task: the loss of a batch, summed over its rows."""

    def loss(self, model: Any, batch: Any) -> Tensor: ...


class Clock(Protocol):
    """The time of a run."""

    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class Share:
    """The rows of a batch that one process computes."""

    batch: Any
    rows: Rows
    tokens: int  # of the whole batch
    weight: float  # 0 for a process without a row: it computes another's, so that all take part in every sum


def share_of(batch: Any, rank: int, world_size: int) -> Share:
    """The rows of a process: consecutive, and as many as the others have, or one more."""
    whole = count_rows(batch)
    first, stop = (number * whole // world_size for number in (rank, rank + 1))
    weight = 1.0
    if first == stop:
        first, stop, weight = 0, 1, 0.0
    return Share(take_rows(batch, slice(first, stop)), Rows(first, stop - first, whole), batch.tokens, weight)


def computed(batch: Any) -> Any:
    """What this process computes of a batch."""
    return batch.batch if isinstance(batch, Share) else batch


class Computation(nn.Module):
    """A model whose forward pass is the loss of its task: the module that DDP and FSDP wrap."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Any) -> Tensor:
        return self.task.loss(self.model, batch)


class Parallel:
    """How the processes of a run compute a step together; in a process that torchrun did not start, alone.

    `signals` are the stop signals that this process received; `clock` has the seconds of the run.
    """

    def __init__(self, model: nn.Module, task: Task, runtime: Runtime | None = None, mode: Mode = "ddp") -> None:
        self.runtime = runtime or Runtime()
        self.model, self.task = model, task
        self.mode: Mode | None = mode if dist.is_initialized() else None
        self.signals: list[int] = []
        self.clock: Clock | None = None
        self.seconds, self.stopped = 0.0, 0
        self._module: Any = Computation(model, task)
        self._sharding: Any = None
        if self.mode in ("fsdp", "hsdp"):
            from regard.training import sharding

            self._sharding = sharding
            mesh = sharding.make_mesh(self.runtime, is_hybrid=self.mode == "hsdp")
            sharding.shard(self._module, list(getattr(model, "blocks", [])), self.runtime.dtype, mesh)

    @property
    def is_sharded(self) -> bool:
        return self._sharding is not None

    # ------------------------------------------------ batches

    def shares(self, batches: Iterator[tuple[Position, Any]], max_tokens: int) -> Iterator[tuple[Position, Any]]:
        """The batches, or of each the share of this process. ConfigError: they cannot be shared."""
        rank, world_size = self.runtime.rank, self.runtime.world_size
        if world_size == 1:
            yield from batches
            return
        if max_tokens % world_size:
            raise ConfigError(
                f"{world_size} processes do not divide training.max_tokens={max_tokens}; "
                f"try training.max_tokens={-(-max_tokens // world_size) * world_size}"
            )
        probed = list(islice(batches, PROBED_BATCHES))
        if (most := max(count_rows(batch) for _, batch in probed)) < world_size:
            raise ConfigError(
                f"{world_size} processes, but a batch of training.max_tokens={max_tokens} has {most} samples; "
                f"start {most} processes, or give more data or a larger training.max_tokens"
            )
        for position, batch in probed:
            yield position, share_of(batch, rank, world_size)
        for position, batch in batches:
            yield position, share_of(batch, rank, world_size)

    # ------------------------------------------------ a step

    def backward(self, batch: Any, scale: Callable[[Tensor], Tensor], *, is_last: bool) -> Tensor:
        """Add the gradient of a batch, or share, to those of the step; returns its loss, summed over the rows.

        `scale` makes of the loss what is differentiated. The processes exchange gradients at the last batch of a step.
        """
        if not isinstance(batch, Share):
            batch = Share(batch, Rows(0, 0, 0), batch.tokens, 1.0)
        named, synchronized = processes.failures_named(self.runtime), self._accumulated(batch, is_last=is_last)
        with self._rows(batch), named, synchronized:
            with self.runtime.autocast():
                loss = self._module(batch.batch)
            loss = loss.float() * batch.weight if self.mode else loss.float()
            # DDP and FSDP take the mean of the gradients, and a loss is a sum over the rows of all processes.
            scale(loss * self.runtime.world_size if self.mode else loss).backward()
        return loss.detach()

    def _rows(self, share: Share) -> AbstractContextManager[None]:
        return nullcontext() if self.runtime.world_size == 1 else rows_of_batch(share.rows)

    @contextmanager
    def _accumulated(self, share: Share, *, is_last: bool) -> Iterator[None]:
        """Gradient accumulation: gradients stay in the process until the last batch of a step."""
        if self.mode is None:
            yield
        elif self._sharding:
            self._module.set_requires_gradient_sync(is_last)
            yield
        else:
            if not isinstance(self._module, DistributedDataParallel):
                self._module = self._in_ddp(share)
            with nullcontext() if is_last else self._module.no_sync():
                yield

    def _in_ddp(self, share: Share) -> DistributedDataParallel:
        with torch.random.fork_rng(), self.runtime.autocast():
            loss = self._module(share.batch)
        return DistributedDataParallel(
            self._module,
            device_ids=None if self.runtime.device.type == "cpu" else [self.runtime.device],
            forward_sync_buffers=False,  # they are equal: all processes build the same model
            gradient_as_bucket_view=True,
            find_unused_parameters=_has_unused(self.model, loss),
        )

    def clip(self, max_norm: float) -> Tensor:
        """Gradient clipping by the norm of the whole gradient, which it returns."""
        with processes.failures_named(self.runtime):
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), max_norm)
            return self._sharding.whole(norm) if self._sharding else norm

    def agree(self, loss: float) -> float:
        """The loss of all processes. `seconds` becomes the clock of rank 0, `stopped` the signal of any process."""
        signal = self.signals[0] if self.signals else 0
        seconds = self.clock.seconds if self.clock and self.runtime.is_main else 0.0
        mine = [loss, seconds, float(signal), float(signal > 0)]
        loss, self.seconds, signals, count = processes.total(mine, self.runtime)
        self.stopped = round(signals / count) if count else 0
        return loss

    def any(self, what: bool) -> bool:
        """Whether it is so in any process."""
        return bool(processes.total([float(what)], self.runtime)[0])

    # ------------------------------------------------ evaluation

    @torch.no_grad()
    def validation_loss(self, batches: Iterable[Any]) -> float:
        """Mean loss per token, teacher-forced, without dropout; the processes take turns with the batches."""
        rank, world_size = self.runtime.rank, self.runtime.world_size
        module = self._module.module if isinstance(self._module, DistributedDataParallel) else self._module
        total, tokens = 0.0, 0
        with evaluation_mode(self._module), self.runtime.autocast(), processes.failures_named(self.runtime):
            batches = iter(batches)
            while several := list(islice(batches, world_size)):
                mine = several[rank] if rank < len(several) else several[0]  # sharded models compute together
                loss = module(self.runtime.move(mine)).item()
                total += loss if rank < len(several) else 0.0
                tokens += sum(batch.tokens for batch in several)
        return processes.total([total], self.runtime)[0] / tokens if tokens else float("nan")

    @contextmanager
    def whole_model(self) -> Iterator[nn.Module]:
        """The model with its weights, outside of a training step. All processes compute the same with it."""
        if not self._sharding:
            yield self.model
            return
        with processes.failures_named(self.runtime):
            self._module.unshard()  # those beside the blocks; a block gets its own when it is called
            try:
                yield self.model
            finally:
                self._module.reshard()

    # ------------------------------------------------ state

    def gathered(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Whole tensors; of sharded ones on the host and in rank 0 alone, the others get nothing."""
        if not self._sharding:
            return dict(tensors)
        found = {}
        with processes.failures_named(self.runtime):
            for name, tensor in tensors.items():
                whole = self._sharding.whole(tensor)
                if self.runtime.is_main:
                    found[name] = whole.cpu()
        return found

    def shards(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Of each tensor what this process has."""
        return (
            {name: self._sharding.local(tensor) for name, tensor in tensors.items()}
            if self._sharding
            else dict(tensors)
        )

    def sharded_like(self, tensor: Tensor, whole: Tensor) -> Tensor:
        """A whole tensor, which all processes have, sharded as another tensor is."""
        return self._sharding.sharded_like(tensor, whole) if self._sharding else whole

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Copied, not assigned: the alignment of a tensor decides how a matrix product is split, and its last bits."""
        here = self.model.state_dict()
        self.model.load_state_dict({name: self.sharded_like(here[name], weight) for name, weight in weights.items()})


def _has_unused(model: nn.Module, loss: Tensor) -> bool:
    """Whether the loss does not depend on some of the parameters: DDP would wait for their gradients."""
    reached, seen, ahead = set(), set(), [loss.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        ahead += [other for other, _ in node.next_functions]
    return any(parameter.requires_grad and id(parameter) not in reached for parameter in model.parameters())
