"""Layer norm (Ba 2016), also of a residual sum."""

from torch import Tensor, nn

from regard.ops.norm import add_layer_norm


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm; with an update, the norm of the residual sum: norm(hidden + update)."""

    def forward(self, hidden: Tensor, update: Tensor | None = None) -> Tensor:
        if update is None:
            return super().forward(hidden)
        return add_layer_norm(hidden, update, self.weight, self.bias, self.eps)
