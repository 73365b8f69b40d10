"""The memory of one rank of a parallel run, by simulation: no tensor has numbers, no process has others beside it.

Real code runs: the model, its loss, autocast, activation checkpointing, FSDP2, AdamW. The tensors are fake, with shapes
and no memory; the process group is fake, and says that it has so many ranks. torch's memory tracker adds up what is
alive. The repeated blocks are alike, so two small numbers of them are simulated, and more are extrapolated: each block
adds the same.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from regard import ops
from regard.errors import ConfigError
from regard.models import build
from regard.ops.cross_entropy import linear_cross_entropy
from regard.runtime import Runtime
from regard.training.parallel import Mode
from regard.training.sharding import make_mesh, shard

SHALLOW, DEEP = 2, 4  # blocks of the simulated models; the memory of others is extrapolated
PREDICTED = 0.15  # of a text to train an encoder on: masked tokens


@dataclass(frozen=True)
class Setup:
    """How a model is trained."""

    mode: Mode
    world_size: int
    local_world_size: int  # ranks of a host
    activation_checkpointing: bool
    dtype: torch.dtype
    rows: int  # of a rank
    tokens: int  # of a row


@dataclass(frozen=True)
class Memory:
    """Bytes of one rank when most are in use."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float  # and what is in use for a moment: gathered weights, intermediate results
    peak: float


def training_memory(config: Any, setup: Setup) -> Memory:
    """The memory of a training step with AdamW."""
    layers = getattr(config, "layers", None)
    if layers is None or layers <= DEEP or hasattr(config, "decoder_layers"):
        return _simulated(config, setup)
    shallow, deep = (_simulated(config.model_copy(update={"layers": count}), setup) for count in (SHALLOW, DEEP))
    slope = (layers - SHALLOW) / (DEEP - SHALLOW)
    return Memory(
        *(one + slope * (other - one) for one, other in zip(vars(shallow).values(), vars(deep).values(), strict=True))
    )


def _simulated(config: Any, setup: Setup) -> Memory:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=setup.world_size)
    try:
        mesh = _mesh(setup)
        with ops.disabled(), FakeTensorMode():
            return _tracked(config, setup, mesh)
    finally:
        dist.destroy_process_group()


def _mesh(setup: Setup) -> Any:
    if setup.mode == "ddp":
        return None
    runtime = Runtime(world_size=setup.world_size, local_world_size=setup.local_world_size)
    return make_mesh(runtime, is_hybrid=setup.mode == "hsdp")


def _tracked(config: Any, setup: Setup, mesh: Any) -> Memory:
    """Run two training steps of a new model, and track what its tensors take."""
    runtime = Runtime(dtype=setup.dtype)
    step = _Step(build(config), setup)
    blocks = list(getattr(step.model, "blocks", []))
    for block in blocks if setup.activation_checkpointing else ():
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if is_sharded := mesh is not None:
        shard(step, blocks, setup.dtype, mesh)
    optimizer = torch.optim.AdamW(step.parameters(), lr=1e-3, fused=True)
    tracker: Any = FSDPMemTracker(step, optimizer) if is_sharded else MemTracker()
    if not is_sharded:
        tracker.track_external(step, optimizer)
    batch = _batch(step.model, setup)
    for number in range(2):  # in the first the optimizer has no state before its end
        with tracker:
            with runtime.autocast():
                loss = step(*batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=is_sharded)  # DDP keeps its buckets
        if not number:
            tracker.reset_mod_stats()
    return _peak(tracker, step, optimizer)


def _peak(tracker: Any, step: nn.Module, optimizer: Any) -> Memory:
    (found,) = tracker.get_tracker_snapshot("peak").values()
    named = {str(key).rpartition(".")[2]: float(value) for key, value in found.items()}
    # The whole of each, also where it is not alive at the peak.
    parameters = sum(_bytes(parameter) for parameter in step.parameters())
    state = sum(_bytes(one) for state in optimizer.state.values() for one in state.values() if isinstance(one, Tensor))
    rest = named["Total"] - parameters - state
    gradients = sum(named.get(name, 0.0) for name in ("GRAD", "SHARDED_GRAD", "UNSHARDED_GRAD"))
    return Memory(parameters, gradients, state, rest - gradients, named["Total"])


def _bytes(tensor: Any) -> float:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return float(local.numel() * local.element_size())


class _Step(nn.Module):
    """A model whose forward pass is its training loss."""

    def __init__(self, model: Any, setup: Setup) -> None:
        super().__init__()
        self.model, self.setup = model, setup

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        return LOSSES[self.model.interface](self.model, ids, targets)


def _causal_lm(model: Any, ids: Tensor, targets: Tensor) -> Tensor:
    hidden = model.hidden_states(ids, None)
    return linear_cross_entropy(hidden.flatten(0, 1), model.output_embeddings, targets.flatten())


def _seq2seq(model: Any, ids: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(model(ids, targets).flatten(0, 1).float(), targets.flatten(), reduction="sum")


def _encoder(model: Any, ids: Tensor, targets: Tensor) -> Tensor:
    hidden = model.encode(ids, torch.zeros_like(ids)).hidden.flatten(0, 1)
    chosen = targets.flatten()[: int(PREDICTED * targets.numel())]
    return functional.cross_entropy(model.token_logits(hidden[: len(chosen)]).float(), chosen, reduction="sum")


LOSSES: dict[str, Any] = {"causal_lm": _causal_lm, "seq2seq": _seq2seq, "encoder": _encoder}


def _batch(model: Any, setup: Setup) -> tuple[Tensor, Tensor]:
    if model.interface not in LOSSES:
        raise ConfigError(f"--world is for {', '.join(LOSSES)} models, got a {model.interface} model")
    shape = setup.rows, setup.tokens
    return torch.ones(shape, dtype=torch.long), torch.ones(shape, dtype=torch.long)
