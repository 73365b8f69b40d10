"""BERT: the encoder half of the Transformer, alone, bidirectional.

Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding". Every token
attends to all tokens of its row, before and after it, so it cannot be trained to predict the next one: it learns from
masked tokens, and from pairs of sentences that may or may not follow each other. Its wiring is that of the 2017 encoder
(post-norm), with learned positions, GELU, and an embedding for each segment of a pair. The heads on top of the encoder
are small and belong to a task:

    Bert                            hidden states (B, T, D), and the pooled row (B, D)
    BertForPreTraining              masked tokens and the next sentence
    BertForMaskedLM                 masked tokens alone
    BertForSequenceClassification   a class, or a score, for the row
    BertForTokenClassification      a tag for each token

Dropout is where the paper has it, except on the attention weights: the fast kernel has none there.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.layers import cost, masks
from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embeddings import MaskedLMHead, TextEmbedding
from regard.layers.feed_forward import FeedForward
from regard.layers.initializing import small_normal
from regard.layers.linear import Linear
from regard.layers.norm import LayerNorm
from regard.layers.tap import Tap
from regard.models.base import EncoderConfig, EncoderIds, Model, check_heads


class BertConfig(EncoderConfig):
    """The config of the encoder; the defaults are those of BERT base, uncased."""

    width: int = Field(768, ge=1, description="D, the width of the hidden states")
    heads: int = Field(12, ge=1, description="H, attention heads")
    layers: int = Field(12, ge=1, description="number of blocks")
    feed_forward: int | None = Field(None, ge=1, description="inner width of the feed-forward network; none: 4 D")
    activation: Literal["relu", "swish", "gelu", "gelu_tanh"] = Field(
        "gelu", description="activation of the feed-forward network"
    )
    pooler: bool = Field(True, description="one more layer on the first token gives a vector for the row")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        check_heads(self.width, self.heads)
        return self

    def flops(self, tokens: int, predicted: float) -> cost.ForwardCost:
        d, inner = self.width, self.feed_forward or 4 * self.width
        pooler = d * d if self.pooler else 0
        return cost.ForwardCost(
            self.layers * cost.block(tokens, d, inner) + pooler + self.head_multiply_adds(tokens, predicted),
            self.layers * self.heads * tokens * tokens,
        )

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return 0

    def masked_lm_multiply_adds(self, predicted: float) -> float:
        return predicted * (self.width**2 + self.width * self.vocab_size)


class BertForPreTrainingConfig(BertConfig):
    """With heads for masked tokens and the next sentence."""

    pooler: Literal[True] = Field(True, description="its head needs the pooler")

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return self.masked_lm_multiply_adds(predicted) + 2 * self.width


class BertForMaskedLMConfig(BertConfig):
    """With a head for masked tokens."""

    pooler: Literal[False] = Field(False, description="its head needs no pooler")

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return self.masked_lm_multiply_adds(predicted)


class BertForSequenceClassificationConfig(BertConfig):
    """With a head that classifies the row."""

    pooler: Literal[True] = Field(True, description="its head needs the pooler")
    labels: tuple[str, ...] = Field((), description="names of the classes; none: it predicts a score")

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return self.width * (len(self.labels) or 1)


class BertForTokenClassificationConfig(BertConfig):
    """With a head that classifies each token."""

    pooler: Literal[False] = Field(False, description="its head needs no pooler")
    labels: tuple[str, ...] = Field(("O",), min_length=1, description="names of the tags")

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return tokens * self.width * len(self.labels)


# Devlin 2019 (base, large); Turc et al. 2019, "Well-EncoderOutput Students Learn Better" (the others).
SIZES = {
    "tiny": BertConfig(width=128, heads=2, layers=2),
    "mini": BertConfig(width=256, heads=4, layers=4),
    "small": BertConfig(width=512, heads=8, layers=4),
    "medium": BertConfig(width=512, heads=8, layers=8),
    "base": BertConfig(),
    "large": BertConfig(width=1024, heads=16, layers=24),
}

TINY: dict[str, Any] = {
    "vocab_size": 40,
    "context": 32,
    "width": 24,
    "heads": 3,
    "layers": 2,
    "special_ids": EncoderIds(pad_id=0, bos_id=1, eos_id=2, mask_id=3),
}
NO_MASK = EncoderIds(pad_id=0, bos_id=1, eos_id=2, mask_id=None)
EXAMPLES = (
    BertConfig(**TINY),
    BertConfig(**TINY, pooler=False, num_segments=1, activation="relu", norm_epsilon=1e-5),
    BertConfig(**TINY | {"heads": 1, "layers": 1, "special_ids": NO_MASK}, num_segments=3),
    BertForPreTrainingConfig(**TINY, feed_forward=40),
    BertForPreTrainingConfig(**TINY | {"heads": 4}, activation="gelu_tanh", dropout=0.0),
    BertForMaskedLMConfig(**TINY),
    BertForMaskedLMConfig(**TINY | {"heads": 2, "layers": 3}, num_segments=1, activation="swish"),
    BertForSequenceClassificationConfig(**TINY, labels=("good", "bad", "neither")),
    BertForSequenceClassificationConfig(**TINY, num_segments=3, feed_forward=32),  # no labels: a score
    BertForTokenClassificationConfig(**TINY, labels=("O", "B-PER", "I-PER")),
    BertForTokenClassificationConfig(**TINY | {"heads": 6}, num_segments=1, labels=("O", "X")),
)


AXES = {"*blocks.*.attention": ("text", "text")}


class EncoderOutput(NamedTuple):
    """A row after the encoder."""

    hidden: Tensor  # (B, T, D)
    pooled: Tensor | None  # (B, D) the row as one vector; None without a pooler


class Bert(Model):
    """`model(ids, segment_ids)` encodes rows (B, T): segment 0 is the first sentence, 1 the second."""

    config_class = BertConfig
    interface = "encoder"
    attention_axes = AXES
    config: BertConfig

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.embedding = TextEmbedding(
            config.vocab_size,
            config.width,
            context=config.context,
            num_segments=config.num_segments,
            dropout=config.dropout,
            epsilon=config.norm_epsilon,
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        if config.pooler:
            self.pooler = Linear(config.width, config.width)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> EncoderOutput:
        hidden = self.embedding(ids, segment_ids)
        mask = masks.padding_mask_or_none(ids, self.config.special_ids.pad_id)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return EncoderOutput(hidden, torch.tanh(self.pooler(hidden[:, 0])) if self.config.pooler else None)

    def encode(self, ids: Tensor, segment_ids: Tensor | None = None) -> EncoderOutput:
        """The same as `forward`; the models with heads have it too."""
        return self(ids, segment_ids)

    def encode_varlen(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The hidden states (T, D) of texts, concatenated; each attends to itself alone, and nothing is padded."""
        together = masks.Varlen([len(text) for text in texts])
        ids = torch.tensor([number for text in texts for number in text], device=self.input_embeddings.device)[None]
        hidden = self.embedding(ids, None, masks.position_ids(together.document_ids.to(ids.device)))
        for block in self.blocks:
            hidden = block(hidden, together)
        return hidden[0]

    @property
    def encoder(self) -> "Bert":
        """Itself; the models with heads have an `encoder`."""
        return self

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.tokens.weight


class Block(nn.Module):
    """Self-attention, then feed-forward (post-norm)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config.width, config.heads, causal=False)
        self.norm_attention = LayerNorm(config.width, eps=config.norm_epsilon)
        self.feed_forward = FeedForward(config.width, config.feed_forward or 4 * config.width, config.activation)
        self.norm_feed_forward = LayerNorm(config.width, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | masks.Varlen | None) -> Tensor:
        hidden = self.after_attention(self.norm_attention(hidden, self.dropout(self.attention(hidden, mask))))
        hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)


class EncoderWithHead(Model):
    """What the models with heads share: the encoder."""

    interface = "encoder"
    attention_axes = AXES
    config: BertConfig

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.encoder = Bert(config)

    def encode(self, ids: Tensor, segment_ids: Tensor | None = None) -> EncoderOutput:
        return self.encoder(ids, segment_ids)

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.encoder.input_embeddings


def masked_lm_head(config: BertConfig) -> MaskedLMHead:
    return MaskedLMHead(config.vocab_size, config.width, activation=config.activation, epsilon=config.norm_epsilon)


class PreTrainingOutput(NamedTuple):
    """The outputs of pretraining."""

    tokens: Tensor  # (B, T, V) logits of the token at each position
    next: Tensor  # (B, 2) logits: 0 the second sentence follows the first, 1 it does not


class BertForPreTraining(EncoderWithHead):
    """Masked tokens and the next sentence: what BERT learns from any text."""

    config_class = BertForPreTrainingConfig

    def __init__(self, config: BertForPreTrainingConfig) -> None:
        super().__init__(config)
        self.head = masked_lm_head(config)
        self.next = Linear(config.width, 2)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> PreTrainingOutput:
        hidden, pooled = self.encode(ids, segment_ids)
        assert pooled is not None
        return PreTrainingOutput(self.token_logits(hidden), self.next_sentence_logits(pooled))

    def token_logits(self, hidden: Tensor) -> Tensor:
        """(…, V) for hidden states (…, D), such as those of the masked tokens alone."""
        return self.head(hidden, self.encoder.embedding.tokens)

    def next_sentence_logits(self, pooled: Tensor) -> Tensor:
        return self.next(pooled)


class BertForMaskedLM(EncoderWithHead):
    """Masked tokens alone: logits (B, T, V)."""

    config_class = BertForMaskedLMConfig

    def __init__(self, config: BertForMaskedLMConfig) -> None:
        super().__init__(config)
        self.head = masked_lm_head(config)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.token_logits(self.encode(ids, segment_ids).hidden)

    def token_logits(self, hidden: Tensor) -> Tensor:
        return self.head(hidden, self.encoder.embedding.tokens)


class BertForSequenceClassification(EncoderWithHead):
    """The class of a row: logits (B, C); without labels its score, (B, 1)."""

    config_class = BertForSequenceClassificationConfig

    def __init__(self, config: BertForSequenceClassificationConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.head = Linear(config.width, len(config.labels) or 1)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.head(self.dropout(self.encode(ids, segment_ids).pooled))


class BertForTokenClassification(EncoderWithHead):
    """The tag of each token: logits (B, T, C)."""

    config_class = BertForTokenClassificationConfig

    def __init__(self, config: BertForTokenClassificationConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.head = Linear(config.width, len(config.labels))
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.head(self.dropout(self.encode(ids, segment_ids).hidden))
