"""The recurrent reader: a class for a whole row (many to one), or a tag for each token (many to many, aligned).

Before BERT, this is how texts were classified and words were tagged: a bidirectional RNN (Schuster & Paliwal 1997;
Graves 2005), here with GRU or LSTM cells. A token's hidden state is the state of the forward direction after it and
that of the backward direction before it; the row is the last state of each direction. It differs from BERT in that two
tokens far apart are connected only through all states between them.

    RNNForSequenceClassification   a class, or a score, for the row
    RNNForTokenClassification      a tag for each token
"""

from typing import Any, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.layers import cost
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.recurrent import CELLS, CellName, RecurrentLayer, output_of
from regard.models.base import EncoderConfig, EncoderIds, Model


class RNNReaderConfig(EncoderConfig):
    """The config of a bidirectional recurrent reader."""

    cell: CellName = Field("gru", description="the recurrent cell")
    width: int = Field(128, ge=2, description="D, the width of embeddings and states, half for each direction")
    layers: int = Field(1, ge=1, description="recurrent layers")
    labels: tuple[str, ...] = Field((), description="names of the classes")

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.width % 2:
            raise ConfigError(
                f"model.width={self.width} has no half for each direction; try model.width={self.width + 1}"
            )
        return self

    def flops(self, tokens: int, predicted: float) -> cost.ForwardCost:
        d, cell = self.width, CELLS[self.cell]
        recurrent = tokens * self.layers * 2 * cell.gates * (d // 2) * (d + d // 2)
        return cost.ForwardCost(recurrent + self.head_multiply_adds(tokens))

    def head_multiply_adds(self, tokens: int) -> int:
        return 0


class RNNForSequenceClassificationConfig(RNNReaderConfig):
    """With a head that classifies the row."""

    labels: tuple[str, ...] = Field((), description="names of the classes; none: it predicts a score")

    def head_multiply_adds(self, tokens: int) -> int:
        return self.width * (len(self.labels) or 1)


class RNNForTokenClassificationConfig(RNNReaderConfig):
    """With a head that classifies each token."""

    labels: tuple[str, ...] = Field(("O",), min_length=1, description="names of the tags")

    def head_multiply_adds(self, tokens: int) -> int:
        return tokens * self.width * len(self.labels)


TINY: dict[str, Any] = {
    "vocab_size": 40,
    "context": 32,
    "width": 24,
    "special_ids": EncoderIds(pad_id=0, bos_id=1, eos_id=2, mask_id=3),
}
EXAMPLES = (
    RNNForSequenceClassificationConfig(**TINY, labels=("good", "bad", "neither")),
    RNNForSequenceClassificationConfig(**TINY, cell="lstm", layers=2),  # no labels: a score
    RNNForTokenClassificationConfig(**TINY, labels=("O", "B-PER", "I-PER")),
    RNNForTokenClassificationConfig(**TINY, cell="elman", layers=2, num_segments=1, labels=("O", "X")),
)


class RNNReader(Model):
    """What both share: embeddings, and recurrent layers in both directions."""

    interface = "encoder"
    config: RNNReaderConfig

    def __init__(self, config: RNNReaderConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width)
        self.segments = Embedding(config.num_segments, config.width, scaled=False)
        self.recurrent = nn.ModuleList(
            RecurrentLayer(config.cell, config.width, config.width, bidirectional=True) for _ in range(config.layers)
        )
        self.dropout = Dropout(config.dropout)
        self.head = Linear(config.width, len(config.labels) or 1)

    def read(self, ids: Tensor, segment_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states (B, T, D), and the row (B, D): the last states of both directions."""
        segments = self.segments.weight[0] if segment_ids is None else self.segments(segment_ids)
        hidden = self.dropout(self.embedding(ids) + segments)
        lengths = (ids != self.config.special_ids.pad_id).sum(1).clamp(min=1)  # a row may be padding alone
        last = hidden
        for layer in self.recurrent:
            hidden, last = layer(hidden, lengths)
        return hidden, output_of(last)

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight


class RNNForSequenceClassification(RNNReader):
    """The class of a row: logits (B, C); without labels its score, (B, 1)."""

    config_class = RNNForSequenceClassificationConfig

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.head(self.dropout(self.read(ids, segment_ids)[1]))


class RNNForTokenClassification(RNNReader):
    """The tag of each token: logits (B, T, C)."""

    config_class = RNNForTokenClassificationConfig

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.head(self.dropout(self.read(ids, segment_ids)[0]))
