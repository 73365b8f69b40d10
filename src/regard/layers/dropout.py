"""Dropout as a module."""

from torch import Tensor, nn

from regard.ops.dropout import dropout


class Dropout(nn.Dropout):
    """nn.Dropout through `ops.dropout`."""

    def forward(self, hidden: Tensor) -> Tensor:
        if not self.training:
            return hidden
        return super().forward(hidden) if self.inplace else dropout(hidden, self.p)
