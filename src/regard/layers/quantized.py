"""Linear layers and embeddings in fewer bits, swapped in from outside.

`quantize` rounds to int8 with a scale for each row. `pack_layers` packs into blocks of 4 or 8 bits, as GGUF files have
them; the recorded step of a language model reads those.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.ops.packed import PackedMatrix, linear_packed, pack, packed_is_supported, unpack, unpack_rows
from regard.ops.quantized import int8_product


class QuantizedLinear(nn.Module):
    """x Wᵀ + b with W in int8."""

    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.product = int8_product(linear.weight)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    def forward(self, hidden: Tensor) -> Tensor:
        return self.product(hidden, self.bias)


class QuantizedEmbedding(Embedding):
    """Looks ids up in float32; computes logits in int8."""

    def __init__(self, embedding: Embedding) -> None:
        nn.Module.__init__(self)
        self.weight, self.pad_id, self.scale = embedding.weight, embedding.pad_id, embedding.scale
        self.product = int8_product(embedding.weight)

    def logits(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.product(hidden, bias)

    def argmax_shortlist(self, bias: Tensor | None = None) -> None:
        """None: its logits are those of the int8 matrix, and cheap already."""


def quantize(model: nn.Module) -> int:
    """Put every linear layer and embedding of a model into int8, in place; returns how many there were."""
    count = 0
    if elsewhere := {parameter.device.type for parameter in model.parameters()} - {"cpu"}:
        raise ConfigError(f"int8 is for the CPU, and this model is on {', '.join(elsewhere)}; leave out int8")
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is Linear:
                setattr(parent, name, QuantizedLinear(child))
            elif type(child) is Embedding:
                setattr(parent, name, QuantizedEmbedding(child))
            else:
                continue
            count += 1
    if not count:
        raise ConfigError("this model has no layers that int8 is for; leave out --precision int8")
    return count


class PackedLinear(nn.Module):
    """x Wᵀ + b with a packed W, of one or more parts, one above the other: queries, keys and values, for example."""

    bias: Tensor | None

    def __init__(self, matrices: Sequence[PackedMatrix], bias: Tensor | None = None) -> None:
        super().__init__()
        self.matrices = tuple(matrices)
        self.register_buffer("bias", None if bias is None else bias.detach().float())

    def forward(self, hidden: Tensor) -> Tensor:
        parts = [linear_packed(hidden, matrix) for matrix in self.matrices]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return found if self.bias is None else found + self.bias


class PackedEmbedding(Embedding):
    """Looks rows of a packed matrix up, and multiplies by all of them."""

    def __init__(self, matrix: PackedMatrix, *, scale: float = 1.0) -> None:
        nn.Module.__init__(self)
        self.matrix, self.scale, self.pad_id = matrix, scale, None

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The matrix (V, D) in float32, unpacked each time."""
        return unpack(self.matrix)

    def forward(self, ids: Tensor) -> Tensor:
        return unpack_rows(self.matrix, ids) * self.scale

    def logits(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return linear_packed(hidden, self.matrix, bias)

    def argmax_shortlist(self, bias: Tensor | None = None) -> None:
        """None: its logits are cheap already."""


def pack_layers(model: nn.Module, bits: int) -> None:
    """Pack every linear layer of a model into 4 or 8 bits, in place, and every embedding into 8."""
    if not packed_is_supported():
        raise ConfigError(f"int{bits} needs the C kernels, which do not run here: `regard info --system` says why")
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is Linear:
                setattr(parent, name, PackedLinear([pack(child.weight, bits)], child.bias))
            elif type(child) is Embedding:
                setattr(parent, name, PackedEmbedding(pack(child.weight, 8), scale=child.scale))
