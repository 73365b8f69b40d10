"""T5, the text-to-text Transformer.

Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer". Every task is
text in, text out, and a prefix names the task: "translate English to German: That is good."

An encoder-decoder as the Transformer of 2017, with pre-norm. What differs: no vector says where a token stands. Instead
a learned bias for each head and each bucket of distances is added to the scores of self-attention, and all layers of a
stack share it. Scores are not divided by √K, the norm is RMS norm, and nothing has a linear bias.

Version 1.0 has a ReLU feed-forward network; its output matrix is the embedding matrix, and hidden states are scaled by
1/√D before it. Version 1.1 has a gated GELU feed-forward network (Shazeer 2020) and an output matrix of its own.
Dropout is on each sublayer's output and at both ends of a stack; the paper has it on attention weights too.
"""

import math
from typing import Any, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.layers import masks
from regard.layers.attention import Dot, KeysValues, MultiHeadAttention
from regard.layers.cost import ForwardCost
from regard.layers.decoding import CrossAttentionState, shortlisted
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import FeedForward, GatedFeedForward
from regard.layers.kv_cache import KVCache
from regard.layers.positions import PositionEncoding
from regard.layers.tap import Tap
from regard.models.base import Model, Seq2SeqConfig
from regard.ops.shortlist import ArgmaxShortlist


class T5Config(Seq2SeqConfig):
    """What a T5 is made of; the defaults are those of t5-small."""

    vocab_size: int = Field(32_128, ge=4, description="rows of the embedding matrix")
    tie_embeddings: bool = Field(True, description="the embedding matrix is also the output matrix (v1.0)")
    scale_output: bool = Field(True, description="scale hidden states by 1/√D before the output matrix (v1.0)")
    width: int = Field(512, ge=1, description="D, the width of hidden states")
    heads: int = Field(8, ge=1, description="H, attention heads")
    head_width: int = Field(64, ge=1, description="K, the width of a head; H · K may differ from D")
    layers: int = Field(6, ge=1, description="blocks in the encoder and in the decoder")
    decoder_layers: int | None = Field(None, ge=1, description="blocks in the decoder, where it differs")
    feed_forward: int = Field(2048, ge=1, description="inner width of the feed-forward network")
    activation: Literal["relu", "swish", "gelu", "gelu_tanh"] = Field(
        "relu", description="activation of the feed-forward network"
    )
    gated: bool = Field(False, description="a gated feed-forward network (v1.1)")
    num_buckets: int = Field(32, ge=4, description="buckets of distances that have a bias each")
    max_distance: int = Field(128, ge=1, description="from this distance on all share the last bucket")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the activations that are set to zero in training")
    norm_epsilon: float = Field(1e-6, gt=0, description="epsilon of the RMS norms")

    @model_validator(mode="after")
    def _ranges_grow(self) -> Self:
        if self.max_distance <= self.num_buckets // 2:
            raise ConfigError(
                f"model.max_distance={self.max_distance}, but half of model.num_buckets={self.num_buckets} hold one "
                f"distance each; wanted at least model.max_distance={self.num_buckets // 2 + 1}"
            )
        return self

    def flops(self, source: int, target: int) -> ForwardCost:
        n, m, d, inner = source, target, self.width, self.heads * self.head_width
        encoders, decoders = self.layers, self.decoder_layers or self.layers
        feed_forward = (3 if self.gated else 2) * d * self.feed_forward
        encoder_block = n * (4 * d * inner + feed_forward) + 2 * n * n * inner
        decoder_block = m * (6 * d * inner + feed_forward) + 2 * n * d * inner + 2 * (m * m + n * m) * inner
        return ForwardCost(
            encoders * encoder_block + decoders * decoder_block + m * d * self.vocab_size,
            self.heads * (encoders * n * n + decoders * (m * m + n * m)),
            2 * decoders * (n + m) * inner,
        )


_V1_1: dict[str, Any] = {"tie_embeddings": False, "scale_output": False, "activation": "gelu_tanh", "gated": True}
# As published (Raffel 2020, 3.7); the v1.1 models are those that FLAN-T5 starts from.
SIZES = {
    "t5-small": T5Config(),
    "t5-base": T5Config(width=768, heads=12, layers=12, feed_forward=3072),
    "t5-large": T5Config(width=1024, heads=16, layers=24, feed_forward=4096),
    "t5-v1.1-small": T5Config(heads=6, layers=8, feed_forward=1024, **_V1_1),
    "t5-v1.1-base": T5Config(width=768, heads=12, layers=12, **_V1_1),
}

TINY = T5Config(vocab_size=40, width=24, heads=3, head_width=8, layers=2, feed_forward=32)
EXAMPLES = (
    TINY,
    TINY.model_copy(update={"head_width": 12, "decoder_layers": 1} | _V1_1),
    TINY.model_copy(update={"head_width": 4, "decoder_layers": 3, "num_buckets": 8, "max_distance": 6}),
)

AXES = {
    "encoder.blocks.*.attention": ("source", "source"),
    "decoder.blocks.*.attention": ("target", "target"),
    "decoder.blocks.*.cross_attention": ("target", "source"),
}


class T5(Model):
    """`model(source, target)` gives logits (B, T, V): at each position, for the next token."""

    config_class = T5Config
    interface = "seq2seq"
    attention_axes = AXES
    config: T5Config

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, scaled=False)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        if not config.tie_embeddings:
            self.output = Embedding(config.vocab_size, config.width, scaled=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal, with deviations that keep the variance of the scores at 1 without dividing by √K."""
        if self.embedding.weight.is_meta:  # the weights are loaded later
            return
        config, inner = self.config, self.config.heads * self.config.head_width
        nn.init.normal_(self.embedding.weight)
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                nn.init.normal_(module.query.weight, std=(config.width * config.head_width) ** -0.5)
                nn.init.normal_(module.key.weight, std=config.width**-0.5)
                nn.init.normal_(module.value.weight, std=config.width**-0.5)
                nn.init.normal_(module.output.weight, std=inner**-0.5)
            elif isinstance(module, FeedForward | GatedFeedForward):
                nn.init.normal_(module.expand.weight, std=config.width**-0.5)
                nn.init.normal_(module.contract.weight, std=config.feed_forward**-0.5)
            elif isinstance(module, RelativePositionBias):
                nn.init.normal_(module.weight, std=config.width**-0.5)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S) and the target so far (B, T), which starts with `bos_id`.

        Rows are padded at the end.
        """
        mask = masks.padding_mask(source, self.config.special_ids.pad_id)
        memory = self.encoder(self.embedding(source), mask)
        # A padded target needs no mask: padding is at the end, and attention is causal.
        return self.logits(self._decode(target, self.decoder.project_memory(memory), mask))

    def start(self, source: Tensor) -> CrossAttentionState:
        """Encode the source (B, S) once; the state that `step` needs."""
        mask = masks.padding_mask(source, self.config.special_ids.pad_id)
        memory = self.encoder(self.embedding(source), mask)
        return CrossAttentionState(
            first=source.new_full((len(source),), self.config.special_ids.bos_id),
            memory=self.decoder.project_memory(memory),
            memory_mask=masks.none_if_full(mask),
            caches=[KVCache() for _ in self.decoder.blocks],
        )

    @shortlisted
    def step(self, tokens: Tensor, state: CrossAttentionState) -> tuple[Tensor, CrossAttentionState]:
        """Logits (B, V) for what follows one more token (B,) in every row."""
        hidden, state = self.decode_step(tokens, state)
        return self.logits(hidden), state

    def decode_step(self, tokens: Tensor, state: CrossAttentionState) -> tuple[Tensor, CrossAttentionState]:
        """A step without its logits: the hidden states (B, D) they are computed from."""
        return self._decode(tokens[:, None], state.memory, state.memory_mask, state.caches)[:, 0], state

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """Finds the id with the largest logit for such hidden states without computing all of them."""
        return self._output.argmax_shortlist()

    @property
    def _output(self) -> Embedding:
        return self.embedding if self.config.tie_embeddings else self.output

    @shortlisted
    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (…, V) for hidden states (…, D), already scaled."""
        return self._output.logits(hidden)

    def _decode(
        self, ids: Tensor, memory: list[KeysValues], mask: Tensor | None, caches: list[KVCache] | None = None
    ) -> Tensor:
        """The decoder's hidden states (B, T, D), ready for the output matrix."""
        hidden = self.decoder(self.embedding(ids), memory, mask, caches)
        return hidden * self.config.width**-0.5 if self.config.scale_output else hidden

    @property
    def alignment_taps(self) -> list[str]:
        """The taps whose mean aligns target tokens with source tokens: all cross-attention weights."""
        return [f"decoder.blocks.{number}.cross_attention.weights" for number in range(len(self.decoder.blocks))]

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated parts, for code that compiles, shards or checkpoints them from outside."""
        return [*self.encoder.blocks, *self.decoder.blocks]


class Encoder(nn.Module):
    """Encodes the source: every token attends to all of it."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.position_bias = RelativePositionBias(config, bidirectional=True)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        bias = self.position_bias(hidden.shape[1], hidden.shape[1])
        hidden = self.dropout(hidden)
        for block in self.blocks:
            hidden = block(hidden, mask, bias)
        return self.dropout(self.norm(hidden))


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.norm_attention = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.attention = _attention(config)
        self.norm_feed_forward = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.feed_forward = _feed_forward(config)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
        normed = self.norm_attention(hidden)
        update = self.dropout(self.attention.self_attend(normed, mask, score_bias=bias))
        hidden = self.after_attention(hidden + update)
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)


class Decoder(nn.Module):
    """Writes the target: each block attends to the target so far, then to the memory."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.position_bias = RelativePositionBias(config, bidirectional=False)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers or config.layers))
        self.norm = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def project_memory(self, memory: Tensor) -> list[KeysValues]:
        """Keys and values of the memory for each block, projected once a sentence."""
        return [block.cross_attention.project_memory(memory) for block in self.blocks]  # type: ignore[union-attr, operator]

    def forward(
        self,
        hidden: Tensor,
        memory: list[KeysValues],
        memory_mask: Tensor | None,
        caches: list[KVCache] | None = None,
    ) -> Tensor:
        queries, before = hidden.shape[1], 0 if caches is None else caches[0].length
        bias = self.position_bias(queries, before + queries)
        hidden = self.dropout(hidden)
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            hidden = block(hidden, bias, memory[number], memory_mask, cache)
        return self.dropout(self.norm(hidden))


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the memory, feed-forward."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.norm_attention = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.attention = _attention(config)
        self.norm_cross_attention = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.cross_attention = _attention(config)
        self.norm_feed_forward = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.feed_forward = _feed_forward(config)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.after_cross_attention = Tap()
        self.hidden = Tap()

    def forward(
        self, hidden: Tensor, bias: Tensor, memory: KeysValues, memory_mask: Tensor | None, cache: KVCache | None
    ) -> Tensor:
        normed = self.norm_attention(hidden)
        update = self.attention.self_attend(normed, causal=True, cache=cache, score_bias=bias)
        hidden = self.after_attention(hidden + self.dropout(update))
        # Beams share the memory of their sentence: queries (B * beams, 1, D) become (B, beams, D).
        shared = self.norm_cross_attention(hidden).reshape(len(memory.key), -1, hidden.shape[-1])
        found = self.cross_attention.cross_attend(shared, memory, memory_mask).reshape(hidden.shape)
        hidden = self.after_cross_attention(hidden + self.dropout(found))
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)


def _attention(config: T5Config) -> MultiHeadAttention:
    return MultiHeadAttention(config.width, config.heads, Dot(), head_width=config.head_width, bias=False)


def _feed_forward(config: T5Config) -> nn.Module:
    if config.gated:
        return GatedFeedForward(config.width, config.feed_forward, config.activation)
    return FeedForward(config.width, config.feed_forward, config.activation, bias=False)


class RelativePositionBias(PositionEncoding):
    """A learned bias on attention scores, for each head and each bucket of distances between query and key."""

    def __init__(self, config: T5Config, *, bidirectional: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.num_buckets, config.heads))
        self.max_distance = config.max_distance
        self.bidirectional = bidirectional

    def forward(self, queries: int, keys: int) -> Tensor:
        """(1, H, T, S) for T queries that are the last of S keys."""
        positions = torch.arange(keys, device=self.weight.device)
        offsets = positions - positions[keys - queries :, None]  # (T, S) negative: the key is before the query
        buckets = position_buckets(
            offsets, num_buckets=len(self.weight), max_distance=self.max_distance, bidirectional=self.bidirectional
        )
        return F.embedding(buckets, self.weight).permute(2, 0, 1).contiguous()[None]


def position_buckets(offsets: Tensor, *, num_buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    """The bucket of each offset, key position minus query position.

    Half of the buckets hold one distance each, the other half ranges that grow by a constant factor up to
    `max_distance`. Bidirectional: one set of buckets for keys before the query and one for keys after it; otherwise
    all keys after it, which a causal mask hides anyway, are in bucket 0.
    """
    if bidirectional:
        num_buckets //= 2
        side = (offsets > 0) * num_buckets
        distances = offsets.abs()
    else:
        side = torch.zeros_like(offsets)
        distances = (-offsets).clamp(min=0)
    exact = num_buckets // 2
    # In single precision, as the published models were trained: a distance at the edge of a range may round either way.
    share = (distances.clamp(min=1).float() / exact).log() / math.log(max_distance / exact)
    ranges = (exact + (share * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return side + torch.where(distances < exact, distances, ranges)
