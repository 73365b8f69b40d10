"""ViLBERT: two streams, one of words and one of the regions of a picture, that look at each other.

Lu et al. 2019, "ViLBERT: Pretraining Task-Agnostic Visiolinguistic Representations for Vision-and-Language Tasks". The
stream of words is BERT's (models/bert.py). The regions are read as a set: what a region shows is its features, where it
lies its box. Each stream has its own width and depth, and first reads by itself; then they meet, several times: the
queries of each look at the keys and values of the other, and both read on. Words and regions are never one sequence.
What it learned is kept in the encoder; the heads on top are small and belong to a task:

    ViLBERT              words (B, T, D), regions (B, R, E), text and picture as one vector each (B, J)
    ViLBERTForPreTraining   hidden words, hidden regions, and whether the text fits the picture
    ViLBERTForQuestionAnswering      a class for the pair: the answer to a question, or whether a statement is true
    ViLBERTForGrounding       which region the text means
    ViLBERTForRetrieval       how well text and picture go together

The first region is the whole picture. A region whose box is all zeros is padding: nothing looks at it.
"""

from typing import Any, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config
from regard.errors import ConfigError, InputError
from regard.layers import cost, masks
from regard.layers.attention import MultiHeadAttention, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import ACTIVATIONS, FeedForward
from regard.layers.initializing import level_normal
from regard.layers.linear import Linear
from regard.layers.norm import LayerNorm
from regard.layers.reading import SentenceEmbedding, WordHead
from regard.layers.tap import Tap
from regard.models.base import EncoderIds, Model

BOX = 5  # numbers of a box: left, top, right, bottom and area, all as shares of the picture
ACTIVATION = "gelu"


class StreamConfig(Config):
    """What one of the two streams is made of."""

    width: int = Field(768, ge=1, description="the length of every vector of the stream")
    heads: int = Field(12, ge=1, description="attentions side by side, of its own blocks and where the streams meet")
    layers: int = Field(6, ge=0, description="blocks in which it reads by itself before the streams meet")
    feed_forward: int | None = Field(None, ge=1, description="inner width of its feed-forward networks; none: 4 widths")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.width % self.heads:
            fitting = self.width - self.width % self.heads or self.heads
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}; try width={fitting}")
        return self

    @property
    def inner(self) -> int:
        return self.feed_forward or 4 * self.width


class SeeingConfig(Config):
    """What a region is: numbers of a detector, or pixels."""

    features: int | None = Field(None, ge=1, description="F, numbers that say what a region shows; none: its pixels")
    inner: int | None = Field(None, ge=1, description="one more layer on them, as pixels need it; none: linear")
    patch: int | None = Field(
        None, ge=1, description="side of the square of pixels a region is brought to; none: other"
    )
    cells: int = Field(0, ge=0, description="regions are so many by so many cells of the picture; 0: boxes are given")
    classes: int = Field(0, ge=0, description="kinds of region that a hidden one is guessed among; 0: its features are")

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if (self.features is None) == (self.patch is None):
            raise ConfigError(
                f"model.seeing.features={self.features} and model.seeing.patch={self.patch}: give one of them, the "
                "features that a file of regions has, or the side of a square of pixels"
            )
        return self

    @property
    def numbers(self) -> int:
        """F, how many a region has."""
        return self.features or 3 * (self.patch or 0) ** 2


class ViLBERTConfig(Config):
    """What the encoder is made of; the defaults are the paper's."""

    vocab_size: int = Field(30_522, ge=5, description="ids the table has; a new tokenizer is trained to at most this")
    context: int = Field(512, ge=4, description="the most pieces it reads at once, symbols counted")
    text: StreamConfig = StreamConfig()
    regions: StreamConfig = StreamConfig(width=1024, heads=8, layers=0, feed_forward=1024)
    co_attention_layers: int = Field(
        6, ge=1, description="how often the streams look at each other, each with a block behind it"
    )
    joint: int = Field(
        1024, ge=1, description="J, the length of the vectors in which a text and a picture are compared"
    )
    seeing: SeeingConfig = SeeingConfig(features=2048)
    num_segments: int = Field(2, ge=1, description="how many of a row it can tell apart")
    dropout: float = Field(0.1, ge=0, lt=1)
    epsilon: float = Field(1e-12, gt=0, description="of the norms")
    special_ids: EncoderIds = EncoderIds()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, number in self.special_ids:
            if number is not None and number >= self.vocab_size:
                raise ConfigError(f"model.special_ids.{name}={number}, but there are only {self.vocab_size} ids")
        return self

    def fitted(self, *, vocab_size: int, special_ids: EncoderIds) -> Self:
        """The same for one tokenizer."""
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})

    def flops(self, tokens: int, predicted: float, regions: int) -> cost.ForwardCost:
        n, r, text, image, layers = tokens, regions, self.text, self.regions, self.co_attention_layers
        numbers, inner = self.seeing.numbers, self.seeing.inner
        features = numbers * inner + inner * image.width if inner else numbers * image.width
        co_attention = (
            cost.cross_attention(n, r, text.width, image.width)
            + cost.cross_attention(r, n, image.width, text.width)
            + cost.feed_forward(n, text.width, text.inner)
            + cost.feed_forward(r, image.width, image.inner)
        )
        text_block, region_block = cost.block(n, text.width, text.inner), cost.block(r, image.width, image.inner)
        return cost.ForwardCost(
            r * (features + BOX * image.width)
            + (text.layers + layers) * text_block
            + (image.layers + layers) * region_block
            + layers * co_attention
            + (text.width + image.width) * self.joint
            + self.head_multiply_adds(predicted, r),
            text.heads * (layers * (n * n + n * r) + text.layers * n * n)
            + image.heads * (layers * (r * r + r * n) + image.layers * r * r),
        )

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return 0


class ViLBERTForPreTrainingConfig(ViLBERTConfig):
    """With heads for hidden words, hidden regions and whether the two fit."""

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        d, e, classes = self.text.width, self.regions.width, self.seeing.classes or self.seeing.numbers
        return predicted * (d * d + d * self.vocab_size) + regions * (e * e + e * classes) + self.joint


class ViLBERTForQuestionAnsweringConfig(ViLBERTConfig):
    """With a head that chooses an answer."""

    labels: tuple[str, ...] = Field(("no", "yes"), min_length=1, description="the answers by name")

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return self.joint * (self.joint + len(self.labels))


class ViLBERTForGroundingConfig(ViLBERTConfig):
    """With a head that chooses a region."""

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return regions * (self.regions.width * self.joint + self.joint)


class ViLBERTForRetrievalConfig(ViLBERTConfig):
    """With a head that says how well text and picture go together."""

    def head_multiply_adds(self, predicted: float, regions: int) -> float:
        return self.joint


TINY: dict[str, Any] = {
    "vocab_size": 40,
    "context": 32,
    "text": StreamConfig(width=24, heads=3, layers=1),
    "regions": StreamConfig(width=16, heads=2, layers=1, feed_forward=24),
    "co_attention_layers": 2,
    "joint": 20,
    "seeing": SeeingConfig(features=10),
    "special_ids": EncoderIds(pad_id=0, bos_id=1, eos_id=2, mask_id=3),
}
WIDE = StreamConfig(width=32, heads=4, layers=0)
NARROW = StreamConfig(width=12, heads=3, layers=0)
EXAMPLES = (
    ViLBERTConfig(**TINY),
    ViLBERTConfig(**TINY | {"regions": WIDE}, num_segments=1),
    ViLBERTForPreTrainingConfig(**TINY | {"seeing": SeeingConfig(features=10, classes=6)}),
    ViLBERTForPreTrainingConfig(**TINY | {"co_attention_layers": 1}, dropout=0.0),  # without classes: features
    ViLBERTForQuestionAnsweringConfig(
        **TINY | {"seeing": SeeingConfig(features=10, inner=12)}, labels=("red", "two", "no")
    ),
    ViLBERTForGroundingConfig(**TINY),
    # One score a pair: a larger epsilon keeps rounding far from the bounds of `regard check`.
    ViLBERTForRetrievalConfig(**TINY | {"text": NARROW}, epsilon=1e-5),
)


class Read(NamedTuple):
    """A text and a picture as the encoder leaves them."""

    hidden: Tensor  # (B, T, D)
    regions: Tensor  # (B, R, E)
    text: Tensor  # (B, J) the text as one vector
    picture: Tensor  # (B, J) the picture as one vector


class ViLBERT(Model):
    """`model(ids, segment_ids, regions, boxes)` reads texts (B, T) beside pictures of regions (B, R, F), (B, R, 5)."""

    config_class = ViLBERTConfig
    interface = "vision_language"
    config: ViLBERTConfig

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__(config)
        self.text_embedding = SentenceEmbedding(
            config.vocab_size,
            config.text.width,
            context=config.context,
            num_segments=config.num_segments,
            dropout=config.dropout,
            epsilon=config.epsilon,
        )
        self.region_embedding = RegionEmbedding(config)
        self.text_blocks = nn.ModuleList(Block(config, config.text) for _ in range(config.text.layers))
        self.region_blocks = nn.ModuleList(Block(config, config.regions) for _ in range(config.regions.layers))
        self.co_attention_layers = nn.ModuleList(CoAttentionLayer(config) for _ in range(config.co_attention_layers))
        self.text = Linear(config.text.width, config.joint)
        self.picture = Linear(config.regions.width, config.joint)
        level_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Read:
        check_picture(self.config, ids, regions, boxes)
        text_mask = masks.padding_if_any(ids, self.config.special_ids.pad_id)
        region_mask = masks.padding_if_any(boxes.any(-1), False)
        hidden, seen = self.text_embedding(ids, segment_ids), self.region_embedding(regions, boxes)
        for block in self.text_blocks:
            hidden = block(hidden, text_mask)
        for block in self.region_blocks:
            seen = block(seen, region_mask)
        for co_attention in self.co_attention_layers:
            hidden, seen = co_attention(hidden, seen, text_mask, region_mask)
        return Read(hidden, seen, torch.tanh(self.text(hidden[:, 0])), torch.tanh(self.picture(seen[:, 0])))

    def read(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Read:
        """What `forward` gives, under the name that the models with heads have for it."""
        return self(ids, segment_ids, regions, boxes)

    @property
    def encoder(self) -> "ViLBERT":
        """Itself, as the models with heads call it."""
        return self

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.text_embedding.tokens.weight


def check_picture(config: ViLBERTConfig, ids: Tensor, regions: Tensor, boxes: Tensor) -> None:
    """InputError unless there is a picture of this model's regions for every text."""
    wanted = (len(ids), *regions.shape[1:2], config.seeing.numbers)
    if regions.shape != wanted or not regions.shape[1]:
        raise InputError(
            f"regions are {tuple(regions.shape)}, wanted ({len(ids)}, R, {config.seeing.numbers}): as many pictures "
            "as texts, one region at least, and the features this model knows"
        )
    if boxes.shape != (*regions.shape[:2], BOX):
        raise InputError(f"boxes are {tuple(boxes.shape)}, wanted {(*regions.shape[:2], BOX)}: {BOX} numbers a region")


class RegionEmbedding(nn.Module):
    """What it shows + where it lies, normed; no place in an order."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        seeing, width = config.seeing, config.regions.width
        if seeing.inner is not None:
            self.inner = Linear(seeing.numbers, seeing.inner)
        self.features = Linear(seeing.inner or seeing.numbers, width)
        self.boxes = Linear(BOX, width)
        self.norm = nn.LayerNorm(width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)
        self.deep = seeing.inner is not None

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        if self.deep:
            features = ACTIVATIONS[ACTIVATION](self.inner(features))
        return self.dropout(self.norm(self.features(features) + self.boxes(boxes)))


class Block(nn.Module):
    """A stream by itself: self-attention, then feed-forward, each added and then normed."""

    def __init__(self, config: ViLBERTConfig, stream: StreamConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(stream.width, stream.heads, causal=False)
        self.norm_attention = LayerNorm(stream.width, eps=config.epsilon)
        self.feed_forward = FeedForward(stream.width, stream.inner, ACTIVATION)
        self.norm_feed_forward = LayerNorm(stream.width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        hidden = self.norm_attention(hidden, self.dropout(self.attention(hidden, mask)))
        hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)


class CoAttentionLayer(nn.Module):
    """Each stream looks at the other as it was before, and then reads on by itself."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        self.text_co_attention = CoAttention(config, config.text, config.regions)
        self.region_co_attention = CoAttention(config, config.regions, config.text)
        self.text_block = Block(config, config.text)
        self.region_block = Block(config, config.regions)

    def forward(
        self, hidden: Tensor, regions: Tensor, text_mask: Tensor | None, region_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        told, shown = (
            self.text_co_attention(hidden, regions, region_mask),
            self.region_co_attention(regions, hidden, text_mask),
        )
        return self.text_block(told, text_mask), self.region_block(shown, region_mask)


class CoAttention(nn.Module):
    """Co-attention: the queries of one stream, the keys and values of the other; then feed-forward, as in a block."""

    def __init__(self, config: ViLBERTConfig, stream: StreamConfig, other: StreamConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(stream.width, stream.heads, memory_width=other.width)
        self.norm_attention = LayerNorm(stream.width, eps=config.epsilon)
        self.feed_forward = FeedForward(stream.width, stream.inner, ACTIVATION)
        self.norm_feed_forward = LayerNorm(stream.width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        hidden = self.norm_attention(hidden, self.dropout(self.attention(hidden, memory, mask)))
        return self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))


class EncoderWithHead(Model):
    """What the models with heads share: the encoder."""

    interface = "vision_language"

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__(config)
        self.encoder = ViLBERT(config)

    def read(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Read:
        return self.encoder(ids, segment_ids, regions, boxes)

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.encoder.input_embeddings


class Pretrained(NamedTuple):
    """What a pretraining model says of its pairs."""

    tokens: Tensor  # (B, T, V) logits of the token at each position
    regions: Tensor  # (B, R, C) logits: of which kind each region is; without kinds (B, R, F), its features
    fits: Tensor  # (B,) logit: the text belongs to the picture


class ViLBERTForPreTraining(EncoderWithHead):
    """Hidden words, hidden regions and whether the two fit: what ViLBERT learns from pictures with captions."""

    config_class = ViLBERTForPreTrainingConfig

    def __init__(self, config: ViLBERTForPreTrainingConfig) -> None:
        super().__init__(config)
        self.head = WordHead(config.vocab_size, config.text.width, activation=ACTIVATION, epsilon=config.epsilon)
        self.kinds = RegionHead(config)
        self.fits = Linear(config.joint, 1)
        level_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Pretrained:
        read = self.read(ids, segment_ids, regions, boxes)
        return Pretrained(self.word_logits(read.hidden), self.region_logits(read.regions), self.fit(read))

    def word_logits(self, hidden: Tensor) -> Tensor:
        """(…, V) for words (…, D): those that were hidden, say, and no others."""
        return self.head(hidden, self.encoder.text_embedding.tokens)

    def region_logits(self, regions: Tensor) -> Tensor:
        """(…, C), or (…, F), for regions (…, E)."""
        return self.kinds(regions)

    def fit(self, read: Read) -> Tensor:
        """(B,): the text and the picture are multiplied, number by number, and judged."""
        return self.fits(read.text * read.picture)[:, 0]


class RegionHead(nn.Module):
    """One more layer, then the kinds of region; or, where there are none, what its features were."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        self.project = Linear(config.regions.width, config.regions.width)
        self.norm = nn.LayerNorm(config.regions.width, eps=config.epsilon)
        self.kinds = Linear(config.regions.width, config.seeing.classes or config.seeing.numbers)

    def forward(self, regions: Tensor) -> Tensor:
        return self.kinds(self.norm(ACTIVATIONS[ACTIVATION](self.project(regions))))


class ViLBERTForQuestionAnswering(EncoderWithHead):
    """The answer for a pair: logits (B, C)."""

    config_class = ViLBERTForQuestionAnsweringConfig

    def __init__(self, config: ViLBERTForQuestionAnsweringConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.inner = Linear(config.joint, config.joint)
        self.norm = nn.LayerNorm(config.joint, eps=config.epsilon)
        self.head = Linear(config.joint, len(config.labels))
        level_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        read = self.read(ids, segment_ids, regions, boxes)
        both = ACTIVATIONS[ACTIVATION](self.inner(self.dropout(read.text * read.picture)))
        return self.head(self.norm(both))


class ViLBERTForGrounding(EncoderWithHead):
    """Which region the text means: logits (B, R), -inf for padding. Each is judged as the whole picture else is."""

    config_class = ViLBERTForGroundingConfig

    def __init__(self, config: ViLBERTForGroundingConfig) -> None:
        super().__init__(config)
        self.fits = Linear(config.joint, 1)
        level_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        read = self.read(ids, segment_ids, regions, boxes)
        each = torch.tanh(self.encoder.picture(read.regions))  # (B, R, J)
        logits = self.fits(read.text[:, None] * each)[:, :, 0]
        return logits.masked_fill(~boxes.any(-1), -torch.inf)


class ViLBERTForRetrieval(EncoderWithHead):
    """How well text and picture go together: scores (B,), for ranking."""

    config_class = ViLBERTForRetrievalConfig

    def __init__(self, config: ViLBERTForRetrievalConfig) -> None:
        super().__init__(config)
        self.fits = Linear(config.joint, 1)
        level_normal(self)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        return self.fit(self.read(ids, segment_ids, regions, boxes))

    def fit(self, read: Read) -> Tensor:
        return self.fits(read.text * read.picture)[:, 0]
