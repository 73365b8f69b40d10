"""FSDP2: weights, gradients and optimizer state sharded over the processes, block by block (Zhao 2023).

Imported only when a run is sharded: it takes half a second to load.
"""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from regard.errors import ConfigError
from regard.runtime import Runtime

CALLED_BY_MODELS = ("project_memory",)  # methods of a block that models call, beside its forward pass


def shard(module: nn.Module, blocks: list[nn.Module], dtype: torch.dtype, mesh: DeviceMesh) -> FSDPModule:
    """Shard each block, and then the rest of the module.

    Weights are exchanged in this dtype and gradients summed in float32; a shard stays float32.
    """
    # `project_memory` returns views; nothing changes them in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    policy = MixedPrecisionPolicy(
        param_dtype=None if dtype is torch.float32 else dtype,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,  # autocast does
    )
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
        for name in CALLED_BY_MODELS:
            if hasattr(block, name):
                register_fsdp_forward_method(block, name)
    return fully_shard(module, mesh=mesh)


def make_mesh(runtime: Runtime, *, is_hybrid: bool) -> DeviceMesh:
    """All ranks; or hosts × ranks of a host: sharded within each, replicated between them."""
    device, world_size, local = runtime.device.type, runtime.world_size, runtime.local_world_size
    if not is_hybrid:
        return init_device_mesh(device, (world_size,))
    if world_size % local:
        raise ConfigError(f"training.parallel=hsdp: {world_size} ranks, {local} on this host; wanted as many on each")
    return init_device_mesh(device, (world_size // local, local), mesh_dim_names=("replicate", "shard"))


def sharded_like(tensor: Any, whole: Tensor) -> Tensor:
    """A whole tensor, which each process has, sharded as another tensor is; without communication."""
    if not isinstance(tensor, DTensor):
        return whole
    return distribute_tensor(whole.to(tensor.device), tensor.device_mesh, tensor.placements, src_data_rank=None)


def whole(tensor: Tensor) -> Tensor:
    """The whole of a tensor; all processes call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local(tensor: Tensor) -> Tensor:
    """The shard of this process."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
