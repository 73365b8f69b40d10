"""Layer norm (Ba 2016), also of a residual sum."""

from typing import Any

from torch import Tensor, nn

from regard.layers.tap import Tap
from regard.ops.norm import add_layer_norm


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm; with an update, the norm of the residual sum: norm(hidden + update)."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.residual = Tap()  # what is normed: the residual sum

    def forward(self, hidden: Tensor, update: Tensor | None = None) -> Tensor:
        if self.residual.watched:
            return super().forward(self.residual(hidden if update is None else hidden + update))
        if update is None:
            return super().forward(hidden)
        return add_layer_norm(hidden, update, self.weight, self.bias, self.eps)
