"""Regions of an image as tokens: the embedding of features and boxes, and the head that predicts masked regions."""

from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.linear import Linear

BOX_NUMBERS = 5  # left, top, right, bottom and area, all as shares of the image


class RegionEmbedding(nn.Module):
    """Features + box, normed. Regions are a set: they have no position ids."""

    def __init__(
        self, features: int, width: int, *, inner: int | None, activation: str, dropout: float, epsilon: float
    ) -> None:
        super().__init__()
        if inner is not None:
            self.inner = Linear(features, inner)
        self.features = Linear(inner or features, width)
        self.boxes = Linear(BOX_NUMBERS, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.dropout = Dropout(dropout)
        self.activation = ACTIVATIONS[activation]
        self.has_inner = inner is not None

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        """(B, R, E) of features (B, R, F) and boxes (B, R, 5)."""
        if self.has_inner:
            features = self.activation(self.inner(features))
        return self.dropout(self.norm(self.features(features) + self.boxes(boxes)))


class RegionHead(nn.Module):
    """A layer and a norm, then the logits of the classes of a region; without classes, its features."""

    def __init__(self, width: int, outputs: int, *, activation: str, epsilon: float) -> None:
        super().__init__()
        self.project = Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.classes = Linear(width, outputs)
        self.activation = ACTIVATIONS[activation]

    def forward(self, regions: Tensor) -> Tensor:
        return self.classes(self.norm(self.activation(self.project(regions))))
