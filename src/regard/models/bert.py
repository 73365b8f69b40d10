"""BERT: the encoder half of the Transformer, alone, reading both ways.

Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding". Every word looks
at all words of its row, before and behind it, so it cannot foretell the next one: it learns from words that were hidden
and from pairs of sentences that may or may not belong together. Its wiring is the 2017 encoder's (each norm stands
behind its sum), with learned positions, GELU, and a vector for each sentence of a pair. What it learned is kept in the
encoder; the heads on top are small and belong to a task:

    Bert               words (B, T, D), and the whole row (B, D)
    BertForPreTraining    hidden words and the next sentence
    BertForMaskedLM          hidden words alone
    BertForSequenceClassification     a class, or a score, for the row
    BertForTokenClassification         a tag for each word

Dropout stands where it does in the paper, but for the one on the attention weights: the fast kernel has none.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config
from regard.errors import ConfigError
from regard.layers import cost, masks
from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import FeedForward
from regard.layers.initializing import small_normal
from regard.layers.linear import Linear
from regard.layers.norm import LayerNorm
from regard.layers.reading import SentenceEmbedding, WordHead
from regard.layers.tap import Tap
from regard.models.base import EncoderIds, Model, heads_fit


class BertConfig(Config):
    """What the encoder is made of; the defaults are those of BERT base, uncased."""

    vocab_size: int = Field(30_522, ge=5, description="ids the table has; a new tokenizer is trained to at most this")
    context: int = Field(512, ge=4, description="the most pieces it reads at once, symbols counted")
    width: int = Field(768, ge=1, description="D, the length of every word vector")
    heads: int = Field(12, ge=1, description="H, attentions side by side")
    layers: int = Field(12, ge=1)
    feed_forward: int | None = Field(None, ge=1, description="inner width of the feed-forward network; none: 4 D")
    num_segments: int = Field(2, ge=1, description="how many of a row it can tell apart")
    activation: Literal["relu", "swish", "gelu", "gelu_tanh"] = "gelu"
    pooler: bool = Field(True, description="the first word goes through one more layer to stand for the whole row")
    dropout: float = Field(0.1, ge=0, lt=1)
    epsilon: float = Field(1e-12, gt=0, description="of the norms")
    special_ids: EncoderIds = EncoderIds()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        heads_fit(self.width, self.heads)
        for name, number in self.special_ids:
            if number is not None and number >= self.vocab_size:
                raise ConfigError(f"model.special_ids.{name}={number}, but there are only {self.vocab_size} ids")
        return self

    def fitted(self, *, vocab_size: int, special_ids: EncoderIds) -> Self:
        """The same for one tokenizer."""
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})

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
    """With heads for hidden words and the next sentence."""

    pooler: Literal[True] = True

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return self.masked_lm_multiply_adds(predicted) + 2 * self.width


class BertForMaskedLMConfig(BertConfig):
    """With a head for hidden words."""

    pooler: Literal[False] = False

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return self.masked_lm_multiply_adds(predicted)


class BertForSequenceClassificationConfig(BertConfig):
    """With a head that judges the row."""

    pooler: Literal[True] = True
    labels: tuple[str, ...] = Field((), description="the classes by name; none: it gives a score instead")

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return self.width * (len(self.labels) or 1)


class BertForTokenClassificationConfig(BertConfig):
    """With a head that names each word."""

    pooler: Literal[False] = False
    labels: tuple[str, ...] = Field(("O",), min_length=1, description="the tags by name")

    def head_multiply_adds(self, tokens: int, predicted: float) -> float:
        return tokens * self.width * len(self.labels)


# Devlin 2019 (base, large); Turc et al. 2019, "Well-Read Students Learn Better" (the others).
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
    BertConfig(**TINY, pooler=False, num_segments=1, activation="relu", epsilon=1e-5),
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


class Read(NamedTuple):
    """A row as the encoder leaves it."""

    hidden: Tensor  # (B, T, D)
    whole: Tensor | None  # (B, D) the row as one vector; None: it has no pooler


class Bert(Model):
    """`model(ids, segment_ids)` reads rows (B, T): segments are 0 for the first sentence, 1 for the second."""

    config_class = BertConfig
    interface = "encoder"
    config: BertConfig

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.embedding = SentenceEmbedding(
            config.vocab_size,
            config.width,
            context=config.context,
            num_segments=config.num_segments,
            dropout=config.dropout,
            epsilon=config.epsilon,
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        if config.pooler:
            self.pooler = Linear(config.width, config.width)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Read:
        hidden = self.embedding(ids, segment_ids)
        mask = masks.padding_if_any(ids, self.config.special_ids.pad_id)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return Read(hidden, torch.tanh(self.pooler(hidden[:, 0])) if self.config.pooler else None)

    def read(self, ids: Tensor, segment_ids: Tensor | None = None) -> Read:
        """What `forward` gives, under the name that the models with heads have for it."""
        return self(ids, segment_ids)

    def encode_varlen(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The hidden states (T, D) of texts, concatenated; each attends to itself alone, and nothing is padded."""
        together = masks.Varlen([len(text) for text in texts])
        ids = torch.tensor([number for text in texts for number in text], device=self.input_embeddings.device)[None]
        hidden = self.embedding(ids, None, masks.position_ids(together.segment_ids.to(ids.device)))
        for block in self.blocks:
            hidden = block(hidden, together)
        return hidden[0]

    @property
    def encoder(self) -> "Bert":
        """Itself, as the models with heads call it."""
        return self

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.embedding.tokens.weight


class Block(nn.Module):
    """Self-attention, then feed-forward, each added and then normed."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config.width, config.heads, causal=False)
        self.norm_attention = LayerNorm(config.width, eps=config.epsilon)
        self.feed_forward = FeedForward(config.width, config.feed_forward or 4 * config.width, config.activation)
        self.norm_feed_forward = LayerNorm(config.width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | masks.Varlen | None) -> Tensor:
        hidden = self.norm_attention(hidden, self.dropout(self.attention(hidden, mask)))
        hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)


class EncoderWithHead(Model):
    """What the models with heads share: the encoder."""

    interface = "encoder"
    config: BertConfig

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.encoder = Bert(config)

    def read(self, ids: Tensor, segment_ids: Tensor | None = None) -> Read:
        return self.encoder(ids, segment_ids)

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.encoder.input_embeddings


def word_head(config: BertConfig) -> WordHead:
    return WordHead(config.vocab_size, config.width, activation=config.activation, epsilon=config.epsilon)


class Pretrained(NamedTuple):
    """What a pretraining model says of its rows."""

    tokens: Tensor  # (B, T, V) logits of the token at each position
    next: Tensor  # (B, 2) logits: 0 the second sentence follows the first, 1 it comes from elsewhere


class BertForPreTraining(EncoderWithHead):
    """Hidden words and the next sentence: what BERT learns from any text."""

    config_class = BertForPreTrainingConfig

    def __init__(self, config: BertForPreTrainingConfig) -> None:
        super().__init__(config)
        self.head = word_head(config)
        self.next = Linear(config.width, 2)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Pretrained:
        hidden, whole = self.read(ids, segment_ids)
        assert whole is not None
        return Pretrained(self.word_logits(hidden), self.next_logits(whole))

    def word_logits(self, hidden: Tensor) -> Tensor:
        """(…, V) for words (…, D): those that were hidden, say, and no others."""
        return self.head(hidden, self.encoder.embedding.tokens)

    def next_logits(self, whole: Tensor) -> Tensor:
        return self.next(whole)


class BertForMaskedLM(EncoderWithHead):
    """Hidden words alone: logits (B, T, V)."""

    config_class = BertForMaskedLMConfig

    def __init__(self, config: BertForMaskedLMConfig) -> None:
        super().__init__(config)
        self.head = word_head(config)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.word_logits(self.read(ids, segment_ids).hidden)

    def word_logits(self, hidden: Tensor) -> Tensor:
        return self.head(hidden, self.encoder.embedding.tokens)


class BertForSequenceClassification(EncoderWithHead):
    """The class of a row: logits (B, C); or its score, (B, 1)."""

    config_class = BertForSequenceClassificationConfig

    def __init__(self, config: BertForSequenceClassificationConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.head = Linear(config.width, len(config.labels) or 1)
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.head(self.dropout(self.read(ids, segment_ids).whole))


class BertForTokenClassification(EncoderWithHead):
    """The tag of each word: logits (B, T, C)."""

    config_class = BertForTokenClassificationConfig

    def __init__(self, config: BertForTokenClassificationConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.head = Linear(config.width, len(config.labels))
        small_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        return self.head(self.dropout(self.read(ids, segment_ids).hidden))
