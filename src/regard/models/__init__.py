"""The architectures, one file each. A new model is one file here and one line in MODELS."""

from typing import NamedTuple

from torch import nn

from regard.config import Facts
from regard.models.transformer import Transformer, TransformerConfig


class Architecture(NamedTuple):
    config: type[Facts]
    model: type[nn.Module]


MODELS = {
    "transformer": Architecture(TransformerConfig, Transformer),
}
