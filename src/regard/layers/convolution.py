"""Convolution over tokens: each position sees a window of its neighbors, all positions at once.

It is computed as one matrix over the concatenated vectors of a window. Half of its outputs are gates for the other half
(GLU, Dauphin 2017), as in a recurrent cell but without sequential steps.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.linear import Linear


class GatedConvolution(nn.Module):
    """GLU(W [x_{t-k+1}; …; x_t] + b): (B, T, D) from (B, T + k - 1, D), padded by the caller."""

    def __init__(self, width: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.window = Linear(kernel * width, 2 * width)
        if not self.window.weight.is_meta:
            # Keeps the variance of the activations, of which the gates stop half (Gehring 2017, 3.5).
            nn.init.normal_(self.window.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
            nn.init.zeros_(self.window.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        length = hidden.shape[1] - self.kernel + 1
        windows = torch.cat([hidden[:, shift : shift + length] for shift in range(self.kernel)], dim=-1)
        return F.glu(self.window(windows), dim=-1)
