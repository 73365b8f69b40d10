"""Regions of an image as tokens: the embedding of features and boxes, and the head that predicts masked regions."""

from typing import Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config
from regard.errors import ConfigError, InputError
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.linear import Linear

BOX_NUMBERS = 5  # left, top, right, bottom and area, all as shares of the image


class VisionConfig(Config):
    """What a region is: the features of a detector, or pixels."""

    features: int | None = Field(None, ge=1, description="F, numbers of a region from a detector; none: its pixels")
    inner: int | None = Field(None, ge=1, description="width of one more layer, which pixels need; none: linear")
    patch_size: int | None = Field(None, ge=1, description="pixels a side that a region is resized to; none: features")
    grid: int = Field(0, ge=0, description="cells a side of the image, which are the regions; 0: boxes are given")
    classes: int = Field(0, ge=0, description="classes that a masked region is predicted among; 0: its features are")

    @model_validator(mode="after")
    def _check_features_or_pixels(self) -> Self:
        if (self.features is None) == (self.patch_size is None):
            raise ConfigError(
                f"model.vision.features={self.features} and model.vision.patch_size={self.patch_size}: give one of "
                "them, the features that a file of regions has, or the pixels a side of a region"
            )
        return self

    @property
    def feature_size(self) -> int:
        """F, the numbers of a region."""
        return self.features or 3 * (self.patch_size or 0) ** 2


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


def check_regions(config: VisionConfig, ids: Tensor, regions: Tensor, boxes: Tensor) -> None:
    """InputError unless there is an image with this model's features for every text."""
    wanted = (len(ids), *regions.shape[1:2], config.feature_size)
    if regions.shape != wanted or not regions.shape[1]:
        raise InputError(
            f"regions are {tuple(regions.shape)}, wanted ({len(ids)}, R, {config.feature_size}): as many images "
            "as texts, one region at least, and the features of this model"
        )
    wanted = (*regions.shape[:2], BOX_NUMBERS)
    if boxes.shape != wanted:
        raise InputError(f"boxes are {tuple(boxes.shape)}, wanted {wanted}: {BOX_NUMBERS} numbers a region")
