"""Linear layers in int8, swapped in from outside: a quarter of the bytes to read, and reading is what a step costs.

Weights are rounded to 8 bits with a scale a row of the matrix; each word is scaled by its own largest number, so that
no word's result depends on the words beside it. Two kernels do the products. Our own takes words in up to 16 bits, as
good as exact. Where it is not to be had, torch's fbgemm does, which wants the words in 7 bits (it adds two products in
16): there each word goes in twice, as two rows, rounded, and what the rounding left, magnified. SmolLM2's words have a
few very large numbers: there 7 bits alone raise the loss by 6 %, either of these by 0.1 %.
"""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from regard import kernels
from regard.errors import ConfigError
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear

WEIGHT, WORD = 127, 63  # levels each way: 8 bits and 7
REST = 2 * WORD  # rounding leaves half a level at most: this makes a whole range of it


class Rounded:
    """A matrix (N, D) in int8 for our own kernel: `rounded(hidden)` is words Wᵀ, about."""

    def __init__(self, weight: Tensor) -> None:
        self._matrix = kernels.rounded(weight)
        self._width = weight.shape[1]

    def __call__(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """(…, N) of words (…, D); no gradient comes back."""
        assert hidden.shape[-1] == self._width, f"words of {hidden.shape[-1]} numbers, wanted {self._width}"
        return kernels.linear_int8(hidden.detach(), self._matrix, bias)


class Packed:
    """The same for torch's kernel."""

    def __init__(self, weight: Tensor) -> None:
        if weight.device.type != "cpu" or "fbgemm" not in torch.backends.quantized.supported_engines:
            raise ConfigError("int8 needs a CPU with torch's fbgemm kernels; leave out --precision int8")
        torch.backends.quantized.engine = "fbgemm"
        weight = weight.detach().float()
        scale = weight.abs().amax(1).clamp(min=1e-12) / WEIGHT
        with warnings.catch_warnings():
            # torch means to move these kernels to another package one day; the versions we allow have them.
            warnings.filterwarnings("ignore", message=".*quantized tensor creation functions.*")
            rounded = torch.quantize_per_channel(
                weight, scale.double(), torch.zeros(len(weight), dtype=torch.long), 0, torch.qint8
            )
            self._kernel: Any = torch.ops.quantized.linear_prepack(rounded, None)
        # Looked up once: a step calls it many times, and each look takes longer than its arithmetic on a small layer.
        self._product: Any = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default

    def __call__(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """(…, N) of words (…, D); no gradient comes back."""
        rows = hidden.detach().reshape(-1, hidden.shape[-1])
        level = rows.abs().amax(-1, keepdim=True).clamp_(min=1e-12).div_(WORD)
        scaled = rows / level  # (B, D) from -63 to 63
        rounded = scaled.round()
        both = torch.cat([rounded, scaled.sub_(rounded).mul_(REST)])
        found, rest = self._product(both, 1.0, WORD + 1, self._kernel).chunk(2)
        found = torch.add(found, rest, alpha=1 / REST)
        found = found.mul_(level) if bias is None else torch.addcmul(bias, found, level)
        return found.view(*hidden.shape[:-1], found.shape[-1])


def int8(weight: Tensor) -> Rounded | Packed:
    """A matrix in int8, for the best kernel there is."""
    return Rounded(weight) if weight.is_cpu and kernels.int8_here() else Packed(weight)


class QuantizedLinear(nn.Module):
    """x Wᵀ + b with W in int8."""

    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.product = int8(linear.weight)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    def forward(self, hidden: Tensor) -> Tensor:
        return self.product(hidden, self.bias)


class QuantizedEmbedding(Embedding):
    """Looks words up as they are; compares with all of them in int8."""

    def __init__(self, embedding: Embedding) -> None:
        nn.Module.__init__(self)
        self.weight, self.pad_id, self.scale = embedding.weight, embedding.pad_id, embedding.scale
        self.product = int8(embedding.weight)

    def logits(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.product(hidden, bias)

    def screen(self, bias: Tensor | None = None) -> None:
        """None: its logits are those of the rounded table, and cheap already."""


def quantize(model: nn.Module) -> int:
    """Put every linear layer and every table of words of a model into int8, in place; how many there were."""
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
