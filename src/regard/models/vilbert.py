"""ViLBERT: two streams, one of words and one of the regions of a picture, that look at each other.

Lu et al. 2019, "ViLBERT: Pretraining Task-Agnostic Visiolinguistic Representations for Vision-and-Language Tasks". The
stream of words is BERT's (models/bert.py). The regions are read as a set: what a region shows is its features, where it
lies its box. Each stream has its own width and depth, and first reads by itself; then they meet, several times: the
queries of each look at the keys and values of the other, and both read on. Words and regions are never one sequence.
What it learned is kept in the encoder; the heads on top are small and belong to a task:

    ViLBERT              words (B, T, D), regions (B, R, E), text and picture as one vector each (B, J)
    ViLBERTPretraining   hidden words, hidden regions, and whether the text fits the picture
    ViLBERTAnswerer      a class for the pair: the answer to a question, or whether a statement is true
    ViLBERTPointer       which region the text means
    ViLBERTMatcher       how well text and picture go together

The first region is the whole picture. A region whose box is all zeros is padding: nothing looks at it.
"""

from typing import Any, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Facts
from regard.errors import ConfigError, InputError
from regard.layers import masks
from regard.layers.attention import MultiHeadAttention, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feed_forward import ACTIVATIONS, FeedForward
from regard.layers.initializing import level_normal
from regard.layers.linear import Linear
from regard.layers.norm import LayerNorm
from regard.layers.reading import SentenceEmbedding, WordHead
from regard.layers.tap import Tap
from regard.models.symbols import ReaderSymbols

BOX = 5  # numbers of a box: left, top, right, bottom and area, all as shares of the picture
ACTIVATION = "gelu"


class StreamConfig(Facts):
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


class SeeingConfig(Facts):
    """What a region is: numbers of a detector, or pixels."""

    features: int | None = Field(None, ge=1, description="F, numbers that say what a region shows; none: its pixels")
    hidden: int | None = Field(None, ge=1, description="one more layer on them, as pixels need it; none: linear")
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


class ViLBERTConfig(Facts):
    """What the encoder is made of; the defaults are the paper's."""

    vocabulary: int = Field(30_522, ge=5, description="ids the table has; a new tokenizer is trained to at most this")
    context: int = Field(512, ge=4, description="the most pieces it reads at once, symbols counted")
    text: StreamConfig = StreamConfig()
    regions: StreamConfig = StreamConfig(width=1024, heads=8, layers=0, feed_forward=1024)
    meetings: int = Field(6, ge=1, description="how often the streams look at each other, each with a block behind it")
    joint: int = Field(
        1024, ge=1, description="J, the length of the vectors in which a text and a picture are compared"
    )
    seeing: SeeingConfig = SeeingConfig(features=2048)
    sentences: int = Field(2, ge=1, description="how many of a row it can tell apart")
    dropout: float = Field(0.1, ge=0, lt=1)
    epsilon: float = Field(1e-12, gt=0, description="of the norms")
    symbols: ReaderSymbols = ReaderSymbols()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, number in self.symbols:
            if number is not None and number >= self.vocabulary:
                raise ConfigError(f"model.symbols.{name}={number}, but there are only {self.vocabulary} ids")
        return self

    def fitted(self, *, vocabulary: int, symbols: ReaderSymbols) -> Self:
        """The same for one tokenizer."""
        return self.model_copy(update={"vocabulary": vocabulary, "symbols": symbols})


class ViLBERTPretrainingConfig(ViLBERTConfig):
    """With heads for hidden words, hidden regions and whether the two fit."""


class ViLBERTAnswererConfig(ViLBERTConfig):
    """With a head that chooses an answer."""

    labels: tuple[str, ...] = Field(("no", "yes"), min_length=1, description="the answers by name")


class ViLBERTPointerConfig(ViLBERTConfig):
    """With a head that chooses a region."""


class ViLBERTMatcherConfig(ViLBERTConfig):
    """With a head that says how well text and picture go together."""


class Read(NamedTuple):
    """A text and a picture as the encoder leaves them."""

    words: Tensor  # (B, T, D)
    regions: Tensor  # (B, R, E)
    text: Tensor  # (B, J) the text as one vector
    picture: Tensor  # (B, J) the picture as one vector


class ViLBERT(nn.Module):
    """`model(ids, segments, regions, boxes)` reads texts (B, T) beside pictures of regions (B, R, F), (B, R, 5)."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        self.config = config
        self.words = SentenceEmbedding(
            config.vocabulary,
            config.text.width,
            context=config.context,
            sentences=config.sentences,
            dropout=config.dropout,
            epsilon=config.epsilon,
        )
        self.regions = RegionEmbedding(config)
        self.word_blocks = nn.ModuleList(Block(config, config.text) for _ in range(config.text.layers))
        self.region_blocks = nn.ModuleList(Block(config, config.regions) for _ in range(config.regions.layers))
        self.meetings = nn.ModuleList(Meeting(config) for _ in range(config.meetings))
        self.text = Linear(config.text.width, config.joint)
        self.picture = Linear(config.regions.width, config.joint)
        level_normal(self)

    def forward(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Read:
        check_picture(self.config, ids, regions, boxes)
        real_words = masks.padding_if_any(ids, self.config.symbols.padding)
        real_regions = masks.padding_if_any(boxes.any(-1), False)
        words, seen = self.words(ids, segments), self.regions(regions, boxes)
        for block in self.word_blocks:
            words = block(words, real_words)
        for block in self.region_blocks:
            seen = block(seen, real_regions)
        for meeting in self.meetings:
            words, seen = meeting(words, seen, real_words, real_regions)
        return Read(words, seen, torch.tanh(self.text(words[:, 0])), torch.tanh(self.picture(seen[:, 0])))

    def read(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Read:
        """What `forward` gives, under the name that the models with heads have for it."""
        return self(ids, segments, regions, boxes)

    @property
    def encoder(self) -> "ViLBERT":
        """Itself, as the models with heads call it."""
        return self

    @property
    def words_table(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.words.words.weight


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
        if seeing.hidden is not None:
            self.hidden = Linear(seeing.numbers, seeing.hidden)
        self.features = Linear(seeing.hidden or seeing.numbers, width)
        self.boxes = Linear(BOX, width)
        self.norm = nn.LayerNorm(width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)
        self.deep = seeing.hidden is not None

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        if self.deep:
            features = ACTIVATIONS[ACTIVATION](self.hidden(features))
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
        self.words = Tap()

    def forward(self, words: Tensor, mask: Tensor | None) -> Tensor:
        words = self.norm_attention(words, self.dropout(self.attention(words, mask)))
        words = self.norm_feed_forward(words, self.dropout(self.feed_forward(words)))
        return self.words(words)


class Meeting(nn.Module):
    """Each stream looks at the other as it was before, and then reads on by itself."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        self.words_look = Look(config, config.text, config.regions)
        self.regions_look = Look(config, config.regions, config.text)
        self.words_read = Block(config, config.text)
        self.regions_read = Block(config, config.regions)

    def forward(
        self, words: Tensor, regions: Tensor, real_words: Tensor | None, real_regions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        told, shown = self.words_look(words, regions, real_regions), self.regions_look(regions, words, real_words)
        return self.words_read(told, real_words), self.regions_read(shown, real_regions)


class Look(nn.Module):
    """Co-attention: the queries of one stream, the keys and values of the other; then feed-forward, as in a block."""

    def __init__(self, config: ViLBERTConfig, stream: StreamConfig, other: StreamConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(stream.width, stream.heads, memory_width=other.width)
        self.norm_attention = LayerNorm(stream.width, eps=config.epsilon)
        self.feed_forward = FeedForward(stream.width, stream.inner, ACTIVATION)
        self.norm_feed_forward = LayerNorm(stream.width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, words: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        words = self.norm_attention(words, self.dropout(self.attention(words, memory, mask)))
        return self.norm_feed_forward(words, self.dropout(self.feed_forward(words)))


class OnEncoder(nn.Module):
    """What the models with heads share: the encoder."""

    def __init__(self, config: ViLBERTConfig) -> None:
        super().__init__()
        self.config: Any = config
        self.encoder = ViLBERT(config)

    def read(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Read:
        return self.encoder(ids, segments, regions, boxes)

    @property
    def words_table(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.encoder.words_table


class Pretrained(NamedTuple):
    """What a pretraining model says of its pairs."""

    words: Tensor  # (B, T, V) logits: which word stands, or stood, at each place
    regions: Tensor  # (B, R, C) logits: of which kind each region is; without kinds (B, R, F), its features
    fits: Tensor  # (B,) logit: the text belongs to the picture


class ViLBERTPretraining(OnEncoder):
    """Hidden words, hidden regions and whether the two fit: what ViLBERT learns from pictures with captions."""

    def __init__(self, config: ViLBERTPretrainingConfig) -> None:
        super().__init__(config)
        self.head = WordHead(config.vocabulary, config.text.width, activation=ACTIVATION, epsilon=config.epsilon)
        self.kinds = RegionHead(config)
        self.fits = Linear(config.joint, 1)
        level_normal(self)

    def forward(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Pretrained:
        read = self.read(ids, segments, regions, boxes)
        return Pretrained(self.word_logits(read.words), self.region_logits(read.regions), self.fit(read))

    def word_logits(self, words: Tensor) -> Tensor:
        """(…, V) for words (…, D): those that were hidden, say, and no others."""
        return self.head(words, self.encoder.words.words)

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


class ViLBERTAnswerer(OnEncoder):
    """The answer for a pair: logits (B, C)."""

    def __init__(self, config: ViLBERTAnswererConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(config.dropout)
        self.hidden = Linear(config.joint, config.joint)
        self.norm = nn.LayerNorm(config.joint, eps=config.epsilon)
        self.head = Linear(config.joint, len(config.labels))
        level_normal(self)

    def forward(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        read = self.read(ids, segments, regions, boxes)
        both = ACTIVATIONS[ACTIVATION](self.hidden(self.dropout(read.text * read.picture)))
        return self.head(self.norm(both))


class ViLBERTPointer(OnEncoder):
    """Which region the text means: logits (B, R), -inf for padding. Each is judged as the whole picture else is."""

    def __init__(self, config: ViLBERTPointerConfig) -> None:
        super().__init__(config)
        self.fits = Linear(config.joint, 1)
        level_normal(self)

    def forward(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        read = self.read(ids, segments, regions, boxes)
        each = torch.tanh(self.encoder.picture(read.regions))  # (B, R, J)
        logits = self.fits(read.text[:, None] * each)[:, :, 0]
        return logits.masked_fill(~boxes.any(-1), -torch.inf)


class ViLBERTMatcher(OnEncoder):
    """How well text and picture go together: scores (B,), for ranking."""

    def __init__(self, config: ViLBERTMatcherConfig) -> None:
        super().__init__(config)
        self.fits = Linear(config.joint, 1)
        level_normal(self)

    def forward(self, ids: Tensor, segments: Tensor | None, regions: Tensor, boxes: Tensor) -> Tensor:
        return self.fit(self.read(ids, segments, regions, boxes))

    def fit(self, read: Read) -> Tensor:
        return self.fits(read.text * read.picture)[:, 0]
