"""The quantized blocks of a GGUF file as they are: layers whose matrices stay in 4, 6 or 8 bits."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.huggingface.names import Names
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.quantized import PackedEmbedding, PackedLinear
from regard.ops.packed import GGUF_TYPES, PackedMatrix, pack_gguf, packed_is_supported

OrderRows = Callable[[str, Tensor], Tensor]  # the rows of a tensor of this name, in our order


def keep_blocks(model: nn.Module, tensors: dict[str, Any], names: Names, order_rows: OrderRows) -> None:
    """Give the linear layers and embeddings of a model on the meta device the blocks of their tensors.

    Those are taken out of `tensors`. A layer with a type that has no packed form keeps its float weight, to be
    dequantized; without C kernels all do.
    """
    if not packed_is_supported():
        return
    for path, layer in list(model.named_modules()):
        if type(layer) not in (Linear, Embedding):
            continue
        parts = names.of(f"{path}.weight")
        if any(name not in tensors for name in parts):
            continue
        matrices = _matrices([(name, tensors[name]) for name in parts], layer.weight.shape, order_rows)
        if matrices is None or (type(layer) is Embedding and len(matrices) > 1):
            continue
        for name in parts:
            del tensors[name]
        if isinstance(layer, Embedding):
            made: nn.Module = PackedEmbedding(matrices[0], scale=layer.scale)
        else:
            made = PackedLinear(matrices, layer.bias)
        parent, _, own = path.rpartition(".")
        setattr(model.get_submodule(parent), own, made)


def _matrices(parts: list[tuple[str, Any]], shape: torch.Size, order_rows: OrderRows) -> list[PackedMatrix] | None:
    """The parts of one matrix, those of one type together; None if they have no packed form, or another shape."""
    columns = shape[1]
    fits = all(len(tensor.shape) == 2 and int(tensor.shape[0]) == columns for _, tensor in parts)
    if not fits or sum(int(tensor.shape[1]) for _, tensor in parts) != shape[0]:
        return None
    found = []
    for kind, several in groupby(parts, lambda part: part[1].tensor_type.name):
        if kind not in GGUF_TYPES or columns % GGUF_TYPES[kind].block:
            return None
        blocks = torch.cat([order_rows(name, _bytes(tensor, columns, kind)) for name, tensor in several])
        matrix = pack_gguf(blocks, kind, columns)
        if matrix is None:
            return None
        found.append(matrix)
    return found


def _bytes(tensor: Any, columns: int, kind: str) -> Tensor:
    """The bytes (N, row bytes) of a tensor's rows."""
    row = columns // GGUF_TYPES[kind].block * GGUF_TYPES[kind].block_bytes
    return torch.from_numpy(np.array(tensor.data, dtype=np.uint8).reshape(-1, row))
