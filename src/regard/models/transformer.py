"""The encoder-decoder Transformer of 2017.

Vaswani et al., "Attention Is All You Need". The encoder reads the source with self-attention that sees both sides;
the decoder writes the target with self-attention that sees only what is written, and looks at the encoder's words
(the memory) with cross-attention. It differs from the RNN translator in that no step waits for the one before it
while training, and from BERT and GPT, its two halves, in having both.

Post-norm is the paper's: norm(x + f(x)). Pre-norm, x + f(norm(x)), trains without warm-up and needs one more norm at
the end. Dropout stands where the paper has it (5.4): on each sublayer's output and on embedding plus position.
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
from regard.models.base import Model, Seq2SeqConfig, SpecialIds, heads_fit
from regard.ops.shortlist import ArgmaxShortlist


class TransformerConfig(Seq2SeqConfig):
    """What a Transformer is made of."""

    target_vocab_size: int | None = Field(None, ge=4, description="ids of the target's own table, where it has one")
    tied: bool = Field(True, description="the target's table is also the output layer")
    scaled: bool = Field(True, description="embeddings times √D on their way in")
    output_bias: bool = Field(False, description="a fixed bias on the logits, as some Marian models have")
    width: int = Field(512, ge=1, description="D, the length of every word vector")
    heads: int = Field(8, ge=1, description="H, attentions side by side")
    layers: int = Field(6, ge=1, description="blocks in the encoder and in the decoder")
    decoder_layers: int | None = Field(None, ge=1, description="blocks in the decoder, where it differs")
    feed_forward: int = Field(2048, ge=1, description="inner width of the feed-forward network")
    activation: Literal["relu", "swish", "gelu"] = "relu"
    dropout: float = Field(0.1, ge=0, lt=1)
    norm: Literal["post", "pre"] = Field("post", description="layer norm after each residual (the paper) or before")
    zero_init_residual: bool = Field(
        False, description="a fresh block adds nothing to its words: its last matrices are zero"
    )
    positions: Literal["sinusoidal", "halves", "learned"] = "sinusoidal"
    join: Literal["added", "concatenated"] = Field("added", description="how positions come to the words")
    longest: int = Field(1024, ge=1, description="positions in the table; learned ones end there")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        heads_fit(self.width, self.heads)
        return self

    @property
    def output_vocab_size(self) -> int:
        return self.target_vocab_size or self.vocab_size

    def fitted(self, *, vocab_size: int, special_ids: SpecialIds, longest: int) -> Self:
        if self.target_vocab_size is not None:
            raise ConfigError(
                "model.target_vocab_size is of models read from elsewhere; here one tokenizer serves both sides"
            )
        if self.positions == "learned" and longest > self.longest:  # better said now than in the middle of the run
            raise ConfigError(
                f"a sentence has {longest} tokens, but model.longest={self.longest} positions are learned; "
                f"give model.longest={longest}, or leave long sentences out with data.max_length"
            )
        return super().fitted(vocab_size=vocab_size, special_ids=special_ids, longest=longest)

    def flops(self, source: int, target: int) -> cost.ForwardCost:
        n, m, d, inner = source, target, self.width, self.feed_forward
        encoders, decoders = self.layers, self.decoder_layers or self.layers
        decoder_block = cost.block(m, d, inner) + cost.cross_attention(m, n, d)
        combine = 2 * (n + m) * d * d if self.join == "concatenated" else 0
        return cost.ForwardCost(
            encoders * cost.block(n, d, inner) + decoders * decoder_block + combine + m * d * self.output_vocab_size,
            self.heads * (encoders * n * n + decoders * (m * m + n * m)),
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
    TINY.model_copy(update={"positions": "learned", "join": "concatenated", "decoder_layers": 1}),
    TINY.model_copy(update={"positions": "halves", "activation": "swish"}),
    TINY.model_copy(update={"target_vocab_size": 40, "tied": False, "output_bias": True, "scaled": False}),
)


class Transformer(Model):
    """`model(source, target)` gives logits (B, T, V): at each place, for the token that comes next."""

    config_class = TransformerConfig
    interface = "seq2seq"
    config: TransformerConfig
    output_bias: Tensor | None

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        padding = config.special_ids.pad_id
        targets = config.output_vocab_size
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=padding, scaled=config.scaled)
        if config.target_vocab_size:
            self.target_embedding = Embedding(targets, config.width, pad_id=padding, scaled=config.scaled)
        if not config.tied:
            self.output = Embedding(targets, config.width, pad_id=padding)
        self.register_buffer("output_bias", torch.zeros(targets) if config.output_bias else None)
        if config.positions == "learned":
            self.positions: nn.Module = LearnedPositions(config.longest, config.width)
        else:
            self.positions = SinusoidalPositions(config.longest, config.width, halves=config.positions == "halves")
        self.join = Concatenated(config.width) if config.join == "concatenated" else Added()
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for matrices, zero for biases; the embedding has its own start."""
        if self.embedding.weight.is_meta:  # weights come from elsewhere
            return
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, LearnedPositions):
                nn.init.normal_(module.table, std=self.config.width**-0.5)
        if self.config.zero_init_residual:
            for module in self.modules():
                if isinstance(module, MultiHeadAttention):
                    nn.init.zeros_(module.output.weight)
                elif isinstance(module, FeedForward):
                    nn.init.zeros_(module.contract.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S) and target (B, T), which begins with `bos_id`; both padded at the end."""
        mask = masks.padding(source, self.config.special_ids.pad_id)
        memory = self.encoder(self._embed(self.embedding, source), mask)
        # The target needs no padding mask: padding stands at the end, and the causal mask hides it.
        hidden = self._embed(self._target_table, target)
        return self.logits(self.decoder(hidden, self.decoder.remember(memory), mask))

    def start(self, source: Tensor) -> CrossAttentionState:
        """Read the source (B, S) once; what `step` needs from then on."""
        mask = masks.padding(source, self.config.special_ids.pad_id)
        head_width = self.config.width // self.config.heads
        memory = encode_unpadded(self._encode, source, mask, encoder=self.encoder, head_width=head_width)
        return CrossAttentionState(
            first=source.new_full((len(source),), self.config.special_ids.bos_id),
            memory=self.decoder.remember(memory),
            memory_mask=None if bool(mask.all()) else mask,
            caches=[KVCache() for _ in self.decoder.blocks],
        )

    @shortlisted
    def step(self, tokens: Tensor, state: CrossAttentionState) -> tuple[Tensor, CrossAttentionState]:
        """Logits (B, V) for what follows one more token (B,) in every row."""
        hidden, state = self.decode_step(tokens, state)
        return self.logits(hidden), state

    def decode_step(self, tokens: Tensor, state: CrossAttentionState) -> tuple[Tensor, CrossAttentionState]:
        """A step without its logits: the hidden states (B, D) they are computed from."""
        hidden = self._embed(self._target_table, tokens[:, None], start=state.caches[0].length)
        return self.decoder(hidden, state.memory, state.memory_mask, caches=state.caches)[:, 0], state

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """Finds the id with the largest logit for such hidden states without computing all of them."""
        return self._output.argmax_shortlist(self.output_bias)

    def _encode(self, ids: Tensor, position_ids: Tensor | None, mask: Tensor | masks.Varlen) -> Tensor:
        """The encoder's hidden states (B, S, D)."""
        return self.encoder(self._embed(self.embedding, ids, position_ids=position_ids), mask)

    @property
    def _target_table(self) -> Embedding:
        return self.target_embedding if self.config.target_vocab_size else self.embedding

    @property
    def _output(self) -> Embedding:
        return self._target_table if self.config.tied else self.output

    @shortlisted
    def logits(self, hidden: Tensor) -> Tensor:
        return self._output.logits(hidden, self.output_bias)

    def _embed(self, table: Embedding, ids: Tensor, *, start: int = 0, position_ids: Tensor | None = None) -> Tensor:
        if position_ids is None:
            positions = self.positions(start, start + ids.shape[1])  # (T, D)
        else:
            positions = self.positions(0, int(position_ids.max()) + 1)[position_ids]  # (B, T, D)
        return self.dropout(self.join(table(ids), positions))

    @property
    def alignment_taps(self) -> list[str]:
        """The taps whose mean tells which source word a target word comes from: all of the cross-attention.

        On the built-in world the mean over all layers and heads is nearer to the gold alignment than any one of them.
        """
        return [f"decoder.blocks.{number}.memory_attention.weights" for number in range(len(self.decoder.blocks))]

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in, the source's where there are two."""
        return self.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated parts, for whoever compiles, shards or recomputes them from outside."""
        return [*self.encoder.blocks, *self.decoder.blocks]


class Encoder(nn.Module):
    """Reads the source: each block lets every word look at every other."""

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
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | masks.Varlen) -> Tensor:
        if self.pre_norm:
            seen = self.norm_attention(hidden)
            hidden = hidden + self.dropout(self.attention(seen, seen, mask))
            hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        else:
            hidden = self.norm_attention(hidden, self.dropout(self.attention(hidden, hidden, mask)))
            hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)


class Decoder(nn.Module):
    """Writes the target: each block looks back at what is written, then at the memory."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = config.decoder_layers or config.layers
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(layers))
        self.norm = LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def remember(self, memory: Tensor) -> list[KeysValues]:
        """The memory as each block sees it, projected once a sentence."""
        return [block.remember(memory) for block in self.blocks]  # type: ignore[operator]

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
    """Masked self-attention, cross-attention to the memory, feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.attention = MultiHeadAttention(config.width, config.heads)
        self.memory_attention = MultiHeadAttention(config.width, config.heads)
        self.feed_forward = FeedForward(config.width, config.feed_forward, config.activation)
        self.norm_attention = LayerNorm(config.width)
        self.norm_memory_attention = LayerNorm(config.width)
        self.norm_feed_forward = LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(
        self,
        hidden: Tensor,
        memory: KeysValues,
        memory_mask: Tensor | None,
        cache: KVCache | None,
    ) -> Tensor:
        if self.pre_norm:
            seen = self.norm_attention(hidden)
            hidden = hidden + self.dropout(self._look_back(seen, cache))
            seen = self.norm_memory_attention(hidden)
            hidden = hidden + self.dropout(self._look_at(seen, memory, memory_mask))
            hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        else:
            hidden = self.norm_attention(hidden, self.dropout(self._look_back(hidden, cache)))
            hidden = self.norm_memory_attention(hidden, self.dropout(self._look_at(hidden, memory, memory_mask)))
            hidden = self.norm_feed_forward(hidden, self.dropout(self.feed_forward(hidden)))
        return self.hidden(hidden)

    def remember(self, memory: Tensor) -> KeysValues:
        return self.memory_attention.remember(memory)

    def _look_back(self, hidden: Tensor, cache: KVCache | None) -> Tensor:
        return self.attention.look_around(hidden, causal=True, cache=cache)

    def _look_at(self, hidden: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        # Beams share their sentence's memory: (B * beams, 1, D) queries become (B, beams, D).
        shared = hidden.reshape(len(memory.key), -1, hidden.shape[-1])
        return self.memory_attention.look(shared, memory, mask).reshape(hidden.shape)
