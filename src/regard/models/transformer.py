"""The encoder-decoder Transformer of 2017.

Vaswani et al., "Attention Is All You Need". The encoder reads the source with bidirectional self-attention; the decoder
writes the target with causal self-attention, and attends to the hidden states of the encoder (the memory) with
cross-attention. It differs from the RNN translator in that all positions are computed at once while training, and from
BERT and GPT, its two halves, in having both.

Post-norm is the paper's: norm(x + f(x)). Pre-norm, x + f(norm(x)), trains without warm-up and needs one more norm at
the end. Dropout is where the paper has it (5.4): on the output of each sublayer and on embedding plus position.
"""

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.layers import cost, masks
from regard.layers.attention import KeysValues, MultiHeadAttention
from regard.layers.decoding import CrossAttentionState, shortlisted
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import FeedForward
from regard.layers.kv_cache import KVCache
from regard.layers.norm import LayerNorm
from regard.layers.positions import Added, Concatenated, LearnedPositions, SinusoidalPositions
from regard.layers.tap import Tap
from regard.layers.varlen import encode_unpadded
from regard.models.base import Model, Seq2SeqConfig, SpecialIds, check_heads
from regard.ops.shortlist import ArgmaxShortlist


class TransformerConfig(Seq2SeqConfig):
    """The config of a Transformer."""

    target_vocab_size: int | None = Field(None, ge=4, description="V of the target, if it has an embedding of its own")
    tie_embeddings: bool = Field(True, description="the target embedding is also the output layer")
    scale_embeddings: bool = Field(True, description="multiply embeddings by √D")
    output_bias: bool = Field(False, description="a fixed bias on the logits, as some Marian models have")
    width: int = Field(512, ge=1, description="D, the width of the hidden states")
    heads: int = Field(8, ge=1, description="H, attention heads")
    layers: int = Field(6, ge=1, description="blocks in the encoder and in the decoder")
    decoder_layers: int | None = Field(None, ge=1, description="blocks in the decoder, where it differs")
    decoder_heads: int | None = Field(None, ge=1, description="attention heads of the decoder, where they differ")
    feed_forward: int = Field(2048, ge=1, description="inner width of the feed-forward network")
    decoder_feed_forward: int | None = Field(None, ge=1, description="the same in the decoder, where it differs")
    activation: Literal["relu", "swish", "gelu"] = Field("relu", description="activation of the feed-forward network")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the activations that are set to zero in training")
    norm: Literal["post", "pre"] = Field("post", description="layer norm after each residual (the paper) or before")
    zero_init_residual: bool = Field(False, description="start the last matrix of each residual branch at zero")
    positions: Literal["sinusoidal", "halves", "learned"] = Field(
        "sinusoidal", description="position encoding; halves: all sines, then all cosines"
    )
    combine_positions: Literal["added", "concatenated"] = Field(
        "added", description="how positions join the embeddings"
    )
    max_positions: int = Field(1024, ge=1, description="positions that are stored; learned ones end there")

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        check_heads(self.width, self.heads)
        if self.decoder_heads is not None:
            check_heads(self.width, self.decoder_heads)
        return self

    @property
    def output_vocab_size(self) -> int:
        return self.target_vocab_size or self.vocab_size

    def fitted(self, *, vocab_size: int, special_ids: SpecialIds, longest: int) -> Self:
        if self.target_vocab_size is not None:
            raise ConfigError("model.target_vocab_size is for imported models; here one tokenizer serves both sides")
        if self.positions == "learned" and longest > self.max_positions:
            raise ConfigError(
                f"a sentence has {longest} tokens, but model.max_positions={self.max_positions} positions are learned; "
                f"give model.max_positions={longest}, or leave long sentences out with data.max_length"
            )
        return super().fitted(vocab_size=vocab_size, special_ids=special_ids, longest=longest)

    def flops(self, source: int, target: int) -> cost.ForwardCost:
        n, m, d, inner = source, target, self.width, self.feed_forward
        encoders, decoders = self.layers, self.decoder_layers or self.layers
        decoder_block = cost.block(m, d, self.decoder_feed_forward or inner) + cost.cross_attention(m, n, d)
        combine = 2 * (n + m) * d * d if self.combine_positions == "concatenated" else 0
        return cost.ForwardCost(
            encoders * cost.block(n, d, inner) + decoders * decoder_block + combine + m * d * self.output_vocab_size,
            self.heads * encoders * n * n + (self.decoder_heads or self.heads) * decoders * (m * m + n * m),
            2 * decoders * (n + m) * d,
        )


# base and big are the paper's (table 3); the smaller ones are for a laptop.
SIZES = {
    "tiny": TransformerConfig(vocab_size=1_000, width=64, heads=4, layers=2, feed_forward=256),
    "small": TransformerConfig(vocab_size=8_000, width=256, heads=4, layers=3, feed_forward=1024),
    "base": TransformerConfig(),
    "big": TransformerConfig(width=1024, heads=16, feed_forward=4096, dropout=0.3),
}

TINY = TransformerConfig(vocab_size=40, width=24, heads=3, layers=2, feed_forward=32)
EXAMPLES = (
    TINY,
    TINY.model_copy(update={"norm": "pre"}),
    TINY.model_copy(update={"positions": "learned", "combine_positions": "concatenated", "decoder_layers": 1}),
    TINY.model_copy(update={"decoder_heads": 4, "decoder_feed_forward": 20}),
    TINY.model_copy(update={"positions": "halves", "activation": "swish"}),
    TINY.model_copy(
        update={"target_vocab_size": 40, "tie_embeddings": False, "output_bias": True, "scale_embeddings": False}
    ),
)

AXES = {
    "encoder.blocks.*.attention": ("source", "source"),
    "decoder.blocks.*.attention": ("target", "target"),
    "decoder.blocks.*.cross_attention": ("target", "source"),
}


class Transformer(Model):
    """`model(source, target)` returns logits (B, T, V): at each position, for the next token."""

    config_class = TransformerConfig
    interface = "seq2seq"
    attention_axes = AXES
    config: TransformerConfig
    output_bias: Tensor | None

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        padding = config.special_ids.pad_id
        targets = config.output_vocab_size
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=padding, scaled=config.scale_embeddings)
        if config.target_vocab_size:
            self.target_embedding = Embedding(targets, config.width, pad_id=padding, scaled=config.scale_embeddings)
        if not config.tie_embeddings:
            self.output = Embedding(targets, config.width, pad_id=padding)
        self.register_buffer("output_bias", torch.zeros(targets) if config.output_bias else None)
        if config.positions == "learned":
            self.positions: nn.Module = LearnedPositions(config.max_positions, config.width)
        else:
            self.positions = SinusoidalPositions(
                config.max_positions, config.width, halves=config.positions == "halves"
            )
        self.combine_positions = Concatenated(config.width) if config.combine_positions == "concatenated" else Added()
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for matrices, zero for biases; the embedding initializes itself."""
        if self.embedding.weight.is_meta:  # weights will be loaded
            return
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, LearnedPositions):
                nn.init.normal_(module.weight, std=self.config.width**-0.5)
        if self.config.zero_init_residual:
            for module in self.modules():
                if isinstance(module, MultiHeadAttention):
                    nn.init.zeros_(module.output.weight)
                elif isinstance(module, FeedForward):
                    nn.init.zeros_(module.contract.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S) and target (B, T), which begins with `bos_id`; both padded at the end."""
        mask = masks.padding_mask(source, self.config.special_ids.pad_id)
        memory = self.encoder(self._embed(self.embedding, source), mask)
        # The target needs no padding mask: padding stands at the end, and the causal mask hides it.
        hidden = self._embed(self._target_embedding, target)
        return self.logits(self.decoder(hidden, self.decoder.project_memory(memory), mask))

    def start(self, source: Tensor) -> CrossAttentionState:
        """Encode the source (B, S) once; the state of `step`."""
        mask = masks.padding_mask(source, self.config.special_ids.pad_id)
        head_width = self.config.width // self.config.heads
        memory = encode_unpadded(self._encode, source, mask, encoder=self.encoder, head_width=head_width)
        return CrossAttentionState(
            first=source.new_full((len(source),), self.config.special_ids.bos_id),
            memory=self.decoder.project_memory(memory),
            memory_mask=masks.none_if_full(mask),
            caches=[KVCache() for _ in self.decoder.blocks],
        )

    @shortlisted
    def step(self, tokens: Tensor, state: CrossAttentionState) -> tuple[Tensor, CrossAttentionState]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        hidden, state = self.decode_step(tokens, state)
        return self.logits(hidden), state

    def decode_step(self, tokens: Tensor, state: CrossAttentionState) -> tuple[Tensor, CrossAttentionState]:
        """A step without the output layer: hidden states (B, D)."""
        hidden = self._embed(self._target_embedding, tokens[:, None], start=state.caches[0].length)
        return self.decoder(hidden, state.memory, state.memory_mask, caches=state.caches)[:, 0], state

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """Finds the id with the largest logit for such hidden states without computing all of them."""
        return self._output.argmax_shortlist(self.output_bias)

    def _encode(self, ids: Tensor, position_ids: Tensor | None, mask: Tensor | masks.Varlen) -> Tensor:
        """The encoder's hidden states (B, S, D)."""
        return self.encoder(self._embed(self.embedding, ids, position_ids=position_ids), mask)

    @property
    def _target_embedding(self) -> Embedding:
        return self.target_embedding if self.config.target_vocab_size else self.embedding

    @property
    def _output(self) -> Embedding:
        return self._target_embedding if self.config.tie_embeddings else self.output

    @shortlisted
    def logits(self, hidden: Tensor) -> Tensor:
        return self._output.logits(hidden, self.output_bias)

    def _embed(self, table: Embedding, ids: Tensor, *, start: int = 0, position_ids: Tensor | None = None) -> Tensor:
        if position_ids is None:
            positions = self.positions(start, start + ids.shape[1])  # (T, D)
        else:
            positions = self.positions(0, int(position_ids.max()) + 1)[position_ids]  # (B, T, D)
        return self.dropout(self.combine_positions(table(ids), positions))

    @property
    def alignment_taps(self) -> list[str]:
        """The taps of all cross-attention; their mean is the alignment.

        On the synthetic data the mean over all layers and heads is nearer to the gold alignment than any one of them.
        """
        return [f"decoder.blocks.{number}.cross_attention.weights" for number in range(len(self.decoder.blocks))]

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D); of the source, where there are two."""
        return self.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated blocks, for activation checkpointing, compiling and sharding from outside."""
        return [*self.encoder.blocks, *self.decoder.blocks]


class Encoder(nn.Module):
    """A stack of bidirectional blocks."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def forward(self, hidden: Tensor, mask: Tensor | masks.Varlen) -> Tensor:
        for block in self.blocks:
            hidden = block(hidden, mask)
        return self.norm(hidden)


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.attention = MultiHeadAttention(config.width, config.heads)
        self.feed_forward = FeedForward(config.width, config.feed_forward, config.activation)
        self.norm_attention = LayerNorm(config.width)
        self.norm_feed_forward = LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | masks.Varlen) -> Tensor:
        if self.pre_norm:
            normed = self.norm_attention(hidden)
            hidden = self.after_attention(hidden + self.dropout(self.attention(normed, normed, mask)))
            hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        else:
            update = self.dropout(self.attention(hidden, hidden, mask))
            hidden = self.after_attention(self.norm_attention(hidden, update))
            hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)


class Decoder(nn.Module):
    """A stack of causal blocks with cross-attention to the memory."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = config.decoder_layers or config.layers
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(layers))
        self.norm = LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def project_memory(self, memory: Tensor) -> list[KeysValues]:
        """Keys and values of the memory for each block, projected once a sentence."""
        return [block.project_memory(memory) for block in self.blocks]  # type: ignore[operator]

    def forward(
        self,
        hidden: Tensor,
        memory: list[KeysValues],
        memory_mask: Tensor | None,
        caches: list[KVCache] | None = None,
    ) -> Tensor:
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            hidden = block(hidden, memory[number], memory_mask, cache)
        return self.norm(hidden)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the memory, feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        heads, inner = config.decoder_heads or config.heads, config.decoder_feed_forward or config.feed_forward
        self.attention = MultiHeadAttention(config.width, heads)
        self.cross_attention = MultiHeadAttention(config.width, heads)
        self.feed_forward = FeedForward(config.width, inner, config.activation)
        self.norm_attention = LayerNorm(config.width)
        self.norm_cross_attention = LayerNorm(config.width)
        self.norm_feed_forward = LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.after_cross_attention = Tap()
        self.hidden = Tap()

    def forward(
        self,
        hidden: Tensor,
        memory: KeysValues,
        memory_mask: Tensor | None,
        cache: KVCache | None,
    ) -> Tensor:
        if self.pre_norm:
            update = self._self_attention(self.norm_attention(hidden), cache)
            hidden = self.after_attention(hidden + self.dropout(update))
            update = self._cross_attention(self.norm_cross_attention(hidden), memory, memory_mask)
            hidden = self.after_cross_attention(hidden + self.dropout(update))
            hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        else:
            update = self.dropout(self._self_attention(hidden, cache))
            hidden = self.after_attention(self.norm_attention(hidden, update))
            update = self.dropout(self._cross_attention(hidden, memory, memory_mask))
            hidden = self.after_cross_attention(self.norm_cross_attention(hidden, update))
            hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)

    def project_memory(self, memory: Tensor) -> KeysValues:
        return self.cross_attention.project_memory(memory)

    def _self_attention(self, hidden: Tensor, cache: KVCache | None) -> Tensor:
        return self.attention.self_attend(hidden, causal=True, cache=cache)

    def _cross_attention(self, hidden: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        # The beams of a sentence share its memory: (B * beams, 1, D) queries become (B, beams, D).
        shared = hidden.reshape(len(memory.key), -1, hidden.shape[-1])
        return self.cross_attention.cross_attend(shared, memory, mask).reshape(hidden.shape)
