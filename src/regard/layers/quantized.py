"""Linear layers and output embeddings in int8, swapped in from outside."""

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
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
