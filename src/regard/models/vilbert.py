"""ViLBERT: two streams, one of text and one of image regions, with co-attention between them.

Lu et al. 2019, "ViLBERT: Pretraining Task-Agnostic Visiolinguistic Representations for Vision-and-Language Tasks". The
text stream is BERT's (models/bert.py). The regions of an image are a set: each has features, which say what it shows,
and a box, which says where it is. Each stream has its own width and depth. First each encodes its own input; then come
co-attention layers: the queries of each stream attend to the keys and values of the other, and a block of each stream
follows. Text and regions are never one sequence. The heads on top of the encoder are small and belong to a task:

    ViLBERT                       hidden (B, T, D), regions (B, R, E), text and image as one vector each (B, J)
    ViLBERTForPreTraining         masked tokens, masked regions, and whether text and image match
    ViLBERTForQuestionAnswering   a class for the pair: the answer to a question, or whether a statement is true
    ViLBERTForGrounding           the region that the text refers to
    ViLBERTForRetrieval           how well text and image match

The first region is the whole image. A region whose box is all zeros is padding: no query attends to it.
"""

from typing import Any, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config
from regard.layers import cost, masks
from regard.layers.attention import MultiHeadAttention, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embeddings import MaskedLMHead, TextEmbedding
from regard.layers.feed_forward import ACTIVATIONS, FeedForward
from regard.layers.initializing import fan_in_normal
from regard.layers.linear import Linear
from regard.layers.norm import LayerNorm
from regard.layers.tap import Tap
from regard.layers.vision.regions import BOX_NUMBERS, RegionEmbedding, RegionHead, VisionConfig, check_regions
from regard.models.base import EncoderConfig, EncoderIds, Model, check_heads

ACTIVATION = "gelu"


class StreamConfig(Config):
    """The config of one of the two streams."""

    width: int = Field(768, ge=1, description="width of its hidden states")
    heads: int = Field(12, ge=1, description="attention heads of its blocks and of its co-attention")
    layers: int = Field(6, ge=0, description="blocks before the co-attention layers")
    feed_forward: int | None = Field(None, ge=1, description="inner width of its feed-forward networks; none: 4 widths")

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        check_heads(self.width, self.heads, section="")
        return self

    @property
    def inner(self) -> int:
        return self.feed_forward or 4 * self.width


class ViLBERTConfig(EncoderConfig):
    """The config of the encoder; the defaults are the paper's."""

    text: StreamConfig = StreamConfig()
    regions: StreamConfig = StreamConfig(width=1024, heads=8, layers=0, feed_forward=1024)
    co_attention_layers: int = Field(6, ge=1, description="each followed by a block of each stream")
    joint_width: int = Field(1024, ge=1, description="J, width of the vectors in which text and image are compared")
    vision: VisionConfig = VisionConfig(features=2048)

    def flops(self, tokens: int, predicted: float, regions: int) -> cost.ForwardCost:
        n, r, layers, vision = tokens, regions, self.co_attention_layers, self.vision
        d, e, text, image = self.text.width, self.regions.width, self.text, self.regions
        features = vision.feature_size * (vision.inner or e) + (vision.inner * e if vision.inner else 0)
        co_attention = cost.cross_attention(n, r, d, e) + cost.cross_attention(r, n, e, d)
        co_attention += cost.feed_forward(n, d, text.inner) + cost.feed_forward(r, e, image.inner)
        blocks = (text.layers + layers) * cost.block(n, d, text.inner)
        blocks += (image.layers + layers) * cost.block(r, e, image.inner)
        embedding = r * (features + BOX_NUMBERS * e)
        head = (d + e) * self.joint_width + self.head_multiply_adds(predicted, r)
        weights = text.heads * (layers * (n * n + n * r) + text.layers * n * n)
        weights += image.heads * (layers * (r * r + r * n) + image.layers * r * r)
        return cost.ForwardCost(embedding + blocks + layers * co_attention + head, weights)

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return 0


class ViLBERTForPreTrainingConfig(ViLBERTConfig):
    """With heads for masked tokens, masked regions and whether the two match."""

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        d, e, classes = self.text.width, self.regions.width, self.vision.classes or self.vision.feature_size
        return predicted * (d * d + d * self.vocab_size) + regions * (e * e + e * classes) + self.joint_width


class ViLBERTForQuestionAnsweringConfig(ViLBERTConfig):
    """With a head that chooses an answer."""

    labels: tuple[str, ...] = Field(("no", "yes"), min_length=1, description="the answers by name")

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return self.joint_width * (self.joint_width + len(self.labels))


class ViLBERTForGroundingConfig(ViLBERTConfig):
    """With a head that chooses a region."""

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return regions * (self.regions.width * self.joint_width + self.joint_width)


class ViLBERTForRetrievalConfig(ViLBERTConfig):
    """With a head that scores how well text and image match."""

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return self.joint_width


TINY: dict[str, Any] = {
    "vocab_size": 40,
    "context": 32,
    "text": StreamConfig(width=24, heads=3, layers=1),
    "regions": StreamConfig(width=16, heads=2, layers=1, feed_forward=24),
    "co_attention_layers": 2,
    "joint_width": 20,
    "vision": VisionConfig(features=10),
    "special_ids": EncoderIds(pad_id=0, bos_id=1, eos_id=2, mask_id=3),
}
WIDE = StreamConfig(width=32, heads=4, layers=0)
NARROW = StreamConfig(width=12, heads=3, layers=0)
EXAMPLES = (
    ViLBERTConfig(**TINY),
    ViLBERTConfig(**TINY | {"regions": WIDE}, num_segments=1),
    ViLBERTForPreTrainingConfig(**TINY | {"vision": VisionConfig(features=10, classes=6)}),
    ViLBERTForPreTrainingConfig(**TINY | {"co_attention_layers": 1}, dropout=0.0),  # without classes: features
    ViLBERTForQuestionAnsweringConfig(
        **TINY | {"vision": VisionConfig(features=10, inner=12)}, labels=("red", "two", "no")
    ),
    ViLBERTForGroundingConfig(**TINY),
    # One score a pair: a larger epsilon keeps rounding far from the bounds of `regard check`.
    ViLBERTForRetrievalConfig(**TINY | {"text": NARROW}, norm_epsilon=1e-5),
)


AXES = {
    "*text_block*.attention": ("text", "text"),
    "*region_block*.attention": ("regions", "regions"),
    "*text_co_attention.attention": ("text", "regions"),
    "*region_co_attention.attention": ("regions", "text"),
}


class EncoderOutput(NamedTuple):
    """Text and image after the encoder."""

    hidden: Tensor  # (B, T, D)
    regions: Tensor  # (B, R, E)
    text: Tensor  # (B, J) the text as one vector
    image: Tensor  # (B, J) the image as one vector


class ViLBERT(Model):
    """`model(ids, segment_ids, regions, boxes)` encodes texts (B, T) and images of regions (B, R, F), (B, R, 5)."""

    config_class = ViLBERTConfig
    interface = "vision_language"
    attention_axes = AXES
    config: ViLBERTConfig

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__(config)
        self.text_embedding = TextEmbedding(
            config.vocab_size,
            config.text.width,
            context=config.context,
            num_segments=config.num_segments,
            dropout=config.dropout,
            epsilon=config.norm_epsilon,
        )
        self.region_embedding = RegionEmbedding(
            config.vision.feature_size,
            config.regions.width,
            inner=config.vision.inner,
            activation=ACTIVATION,
            dropout=config.dropout,
            epsilon=config.norm_epsilon,
        )
        self.text_blocks = nn.ModuleList(Block(config, config.text) for _ in range(config.text.layers))
        self.region_blocks = nn.ModuleList(Block(config, config.regions) for _ in range(config.regions.layers))
        self.co_attention_layers = nn.ModuleList(CoAttentionLayer(config) for _ in range(config.co_attention_layers))
        self.text = Linear(config.text.width, config.joint_width)
        self.image = Linear(config.regions.width, config.joint_width)
        fan_in_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> EncoderOutput:
        check_regions(self.config.vision, ids, regions, boxes)
        text_mask = masks.padding_mask_or_none(ids, self.config.special_ids.pad_id)
        region_mask = masks.padding_mask_or_none(boxes.any(-1), False)
        hidden, regions = self.text_embedding(ids, segment_ids), self.region_embedding(regions, boxes)
        for block in self.text_blocks:
            hidden = block(hidden, text_mask)
        for block in self.region_blocks:
            regions = block(regions, region_mask)
        for co_attention in self.co_attention_layers:
            hidden, regions = co_attention(hidden, regions, text_mask, region_mask)
        text, image = torch.tanh(self.text(hidden[:, 0])), torch.tanh(self.image(regions[:, 0]))
        return EncoderOutput(hidden, regions, text, image)

    def encode(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> EncoderOutput:
        """The same as `forward`; the models with heads have it too."""
        return self(ids, segment_ids, regions, boxes)

    @property
    def encoder(self) -> "ViLBERT":
        """Itself; the models with heads have an `encoder`."""
        return self

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.text_embedding.tokens.weight


class Block(nn.Module):
    """A block of one stream: self-attention, then feed-forward (post-norm)."""

    def __init__(self, config: ViLBERTConfig, stream: StreamConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(stream.width, stream.heads, causal=False)
        self.norm_attention = LayerNorm(stream.width, eps=config.norm_epsilon)
        self.feed_forward = FeedForward(stream.width, stream.inner, ACTIVATION)
        self.norm_feed_forward = LayerNorm(stream.width, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        hidden = self.after_attention(self.norm_attention(hidden, self.dropout(self.attention(hidden, mask))))
        hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)


class CoAttentionLayer(nn.Module):
    """Each stream attends to the other as it was before this layer; then a block of each."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        self.text_co_attention = CoAttention(config, config.text, config.regions)
        self.region_co_attention = CoAttention(config, config.regions, config.text)
        self.text_block = Block(config, config.text)
        self.region_block = Block(config, config.regions)

    def forward(
        self, hidden: Tensor, regions: Tensor, text_mask: Tensor | None, region_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        text = self.text_co_attention(hidden, regions, region_mask)
        image = self.region_co_attention(regions, hidden, text_mask)
        return self.text_block(text, text_mask), self.region_block(image, region_mask)


class CoAttention(nn.Module):
    """The queries of one stream, the keys and values of the other; then feed-forward, as in a block."""

    def __init__(self, config: ViLBERTConfig, stream: StreamConfig, other: StreamConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(stream.width, stream.heads, memory_width=other.width)
        self.norm_attention = LayerNorm(stream.width, eps=config.norm_epsilon)
        self.feed_forward = FeedForward(stream.width, stream.inner, ACTIVATION)
        self.norm_feed_forward = LayerNorm(stream.width, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        hidden = self.after_attention(self.norm_attention(hidden, self.dropout(self.attention(hidden, memory, mask))))
        return self.hidden(self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden))))


class EncoderWithHead(Model):
    """What the models with heads share: the encoder."""

    interface = "vision_language"
    attention_axes = AXES

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__(config)
        self.encoder = ViLBERT(config)

    def encode(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> EncoderOutput:
        return self.encoder(ids, segment_ids, regions, boxes)

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.encoder.input_embeddings


class PreTrainingOutput(NamedTuple):
    """The outputs of pretraining."""

    tokens: Tensor  # (B, T, V) logits of the token at each position
    regions: Tensor  # (B, R, C) logits of the class of each region; without classes (B, R, F), its features
    matching: Tensor  # (B,) logit: the text describes the image


class ViLBERTForPreTraining(EncoderWithHead):
    """Masked tokens, masked regions and matching: what ViLBERT learns from images with captions."""

    config_class = ViLBERTForPreTrainingConfig

    def __init__(self, config: ViLBERTForPreTrainingConfig) -> None:
        super().__init__(config)
        self.head = MaskedLMHead(
            config.vocab_size, config.text.width, activation=ACTIVATION, epsilon=config.norm_epsilon
        )
        outputs = config.vision.classes or config.vision.feature_size
        self.region_head = RegionHead(config.regions.width, outputs, activation=ACTIVATION, epsilon=config.norm_epsilon)
        self.matching = Linear(config.joint_width, 1)
        fan_in_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> PreTrainingOutput:
        found = self.encode(ids, segment_ids, regions, boxes)
        return PreTrainingOutput(
            self.token_logits(found.hidden), self.region_logits(found.regions), self.matching_logits(found)
        )

    def token_logits(self, hidden: Tensor) -> Tensor:
        """(…, V) for hidden states (…, D), such as those of the masked tokens alone."""
        return self.head(hidden, self.encoder.text_embedding.tokens)

    def region_logits(self, regions: Tensor) -> Tensor:
        """(…, C), or (…, F), for regions (…, E)."""
        return self.region_head(regions)

    def matching_logits(self, found: EncoderOutput) -> Tensor:
        """(B,): a linear layer over the elementwise product of text and image."""
        return self.matching(found.text * found.image)[:, 0]


class ViLBERTForQuestionAnswering(EncoderWithHead):
    """The answer for a text and an image: logits (B, C)."""

    config_class = ViLBERTForQuestionAnsweringConfig

    def __init__(self, config: ViLBERTForQuestionAnsweringConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.inner = Linear(config.joint_width, config.joint_width)
        self.norm = nn.LayerNorm(config.joint_width, eps=config.norm_epsilon)
        self.head = Linear(config.joint_width, len(config.labels))
        fan_in_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        found = self.encode(ids, segment_ids, regions, boxes)
        both = ACTIVATIONS[ACTIVATION](self.inner(self.dropout(found.text * found.image)))
        return self.head(self.norm(both))


class ViLBERTForGrounding(EncoderWithHead):
    """The region that the text refers to: logits (B, R), -inf for padding. Each region is matched like an image."""

    config_class = ViLBERTForGroundingConfig

    def __init__(self, config: ViLBERTForGroundingConfig) -> None:
        super().__init__(config)
        self.matching = Linear(config.joint_width, 1)
        fan_in_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        found = self.encode(ids, segment_ids, regions, boxes)
        each = torch.tanh(self.encoder.image(found.regions))  # (B, R, J)
        logits = self.matching(found.text[:, None] * each)[:, :, 0]
        return logits.masked_fill(~boxes.any(-1), -torch.inf)


class ViLBERTForRetrieval(EncoderWithHead):
    """How well text and image match: scores (B,), for ranking."""

    config_class = ViLBERTForRetrievalConfig

    def __init__(self, config: ViLBERTForRetrievalConfig) -> None:
        super().__init__(config)
        self.matching = Linear(config.joint_width, 1)
        fan_in_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        return self.matching_logits(self.encode(ids, segment_ids, regions, boxes))

    def matching_logits(self, found: EncoderOutput) -> Tensor:
        return self.matching(found.text * found.image)[:, 0]
