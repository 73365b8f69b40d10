"""Convolution over words: each place sees a window of its neighbors, all places at once.

Written as what it is, one matrix over the words of the window side by side. Of its outputs, half are gates for the
other half (Dauphin 2017): a gate lets its value through or not, as in a recurrent cell but without waiting.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.linear import Linear


class GatedConvolution(nn.Module):
    """GLU(W [x_{t-k+1}; …; x_t] + b): (B, T, D) from (B, T + k - 1, D), of which the caller fills the margins."""

    def __init__(self, width: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.window = Linear(kernel * width, 2 * width)
        if not self.window.weight.is_meta:
            # The variance of what goes in comes out again, with half of it stopped by the gates (Gehring 2017, 3.5).
            nn.init.normal_(self.window.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
            nn.init.zeros_(self.window.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        position_ids = hidden.shape[1] - self.kernel + 1
        windows = torch.cat([hidden[:, shift : shift + position_ids] for shift in range(self.kernel)], dim=-1)
        return F.glu(self.window(windows), dim=-1)
