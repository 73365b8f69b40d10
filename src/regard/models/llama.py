"""Llama: GPT as it is built today.

Touvron et al. 2023; SmolLM2 and Llama 3 are of this family. The wiring is GPT's, pre-norm; the layers changed: rotary
position embeddings rotate queries and keys instead of being added to the embeddings, RMS norm leaves out the mean, the
feed-forward network is gated, several heads share keys and values (grouped-query attention), and there are no biases
(except Qwen2's, on queries, keys and values).
"""

from collections.abc import Sequence
from typing import Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config
from regard.errors import ConfigError
from regard.layers.attention import ApplyRotary, SelfAttention
from regard.layers.cost import ForwardCost
from regard.layers.decoding import PromptState, positions_and_mask, prefill_inputs, shortlisted
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import GatedFeedForward
from regard.layers.initializing import small_normal
from regard.layers.kv_cache import KVCache
from regard.layers.positions import RopeScaling, Rotary
from regard.layers.tap import Tap
from regard.models.base import CausalLMConfig, CausalLMIds, Model, check_heads
from regard.ops.shortlist import ArgmaxShortlist


class RopeScalingConfig(Config):
    """See layers.positions.RopeScaling; the defaults are those of Llama 3.2."""

    factor: float = Field(32.0, ge=1, description="low frequencies are divided by it")
    low_freq_factor: float = Field(1.0, gt=0, description="wavelengths above original_context / this: in full")
    high_freq_factor: float = Field(4.0, gt=0, description="wavelengths below original_context / this: not at all")
    original_context: int = Field(8192, ge=1, description="the context it was trained with before")

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.high_freq_factor <= self.low_freq_factor:
            raise ConfigError(
                f"model.rope_scaling.high_freq_factor={self.high_freq_factor} is not above "
                f"model.rope_scaling.low_freq_factor={self.low_freq_factor}"
            )
        return self


class LlamaConfig(CausalLMConfig):
    """The config of a Llama; the defaults are those of SmolLM2-135M."""

    vocab_size: int = Field(49_152, ge=2, description="V; a new tokenizer is trained to at most this size")
    context: int = Field(8192, ge=1, description="the most tokens it attends to")
    width: int = Field(576, ge=1, description="D, the width of the hidden states")
    heads: int = Field(9, ge=1, description="H, attention heads")
    num_kv_heads: int = Field(3, ge=1, description="heads of keys and values (grouped-query attention)")
    layers: int = Field(30, ge=1, description="number of blocks")
    feed_forward: int = Field(1536, ge=1, description="inner width of the feed-forward network")
    tie_embeddings: bool = Field(True, description="the embedding matrix is also the output layer")
    qkv_bias: bool = Field(False, description="queries, keys and values have a bias, as in Qwen2")
    rope_theta: float = Field(100_000.0, gt=0, description="base of the rotary frequencies: larger rotates more slowly")
    rope_scaling: RopeScalingConfig | None = Field(None, description="divides low frequencies, as Llama 3 does")
    norm_epsilon: float = Field(1e-5, gt=0, description="epsilon of the RMS norms")

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        check_heads(self.width, self.heads)
        if self.heads % self.num_kv_heads:
            raise ConfigError(f"model.heads={self.heads} does not divide into model.num_kv_heads={self.num_kv_heads}")
        if self.width // self.heads % 2:
            raise ConfigError(
                f"model.width={self.width} / model.heads={self.heads} is odd; rotary embeddings rotate pairs of numbers"
            )
        return self

    def flops(self, tokens: int) -> ForwardCost:
        t, d = tokens, self.width
        keys = d * self.num_kv_heads // self.heads
        matrices = 2 * d * d + 2 * d * keys + 3 * d * self.feed_forward
        return ForwardCost(
            self.layers * (t * matrices + 2 * t * t * d) + t * d * self.vocab_size,
            self.layers * self.heads * t * t,
            2 * self.layers * t * keys,
        )


# As published.
SIZES = {
    "smollm2-135m": LlamaConfig(),
    "smollm2-360m": LlamaConfig(width=960, heads=15, num_kv_heads=5, layers=32, feed_forward=2560),
    "llama-3.2-1b": LlamaConfig(
        vocab_size=128_256,
        context=131_072,
        width=2048,
        heads=32,
        num_kv_heads=8,
        layers=16,
        feed_forward=8192,
        rope_theta=500_000.0,
        rope_scaling=RopeScalingConfig(),
    ),
}

TINY = LlamaConfig(
    vocab_size=40,
    context=32,
    width=24,
    heads=6,
    num_kv_heads=2,
    layers=2,
    feed_forward=32,
    special_ids=CausalLMIds(bos_id=1, eos_id=2),
)
EXAMPLES = (
    TINY,
    TINY.model_copy(update={"heads": 4, "num_kv_heads": 1}),
    TINY.model_copy(update={"heads": 3, "num_kv_heads": 3, "rope_theta": 100.0}),
    TINY.model_copy(update={"tie_embeddings": False, "qkv_bias": True}),
    TINY.model_copy(update={"rope_theta": 100.0, "rope_scaling": RopeScalingConfig(factor=8.0, original_context=16)}),
)

AXES = {"blocks.*.attention": ("text", "text")}


class Llama(Model):
    """`model(ids)` returns logits (B, T, V): at each position, for the next token."""

    config_class = LlamaConfig
    interface = "causal_lm"
    attention_axes = AXES
    config: LlamaConfig
    alignment_taps: tuple[str, ...] = ()

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, scaled=False)
        rope_scaling = None if config.rope_scaling is None else RopeScaling(**config.rope_scaling.model_dump())
        self.positions = Rotary(config.width // config.heads, config.rope_theta, rope_scaling)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        if not config.tie_embeddings:
            self.output = Embedding(config.vocab_size, config.width, scaled=False)
        small_normal(self, config.layers)

    def forward(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) for ids (B, T). With `document_ids`, the documents of a row do not attend to each other."""
        return self.logits(self.hidden_states(ids, document_ids))

    def hidden_states(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """(B, T, D), after the last norm: all but the output layer."""
        position_ids, mask = positions_and_mask(document_ids)
        return self._run_blocks(ids, 0, position_ids, mask)

    @shortlisted
    def logits(self, hidden: Tensor) -> Tensor:
        return self.output_layer.logits(hidden)

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight

    @property
    def output_embeddings(self) -> Tensor:
        """The matrix (V, D) of the output layer, for a loss that does not compute all logits at once."""
        return self.output_layer.weight

    def start(self, prompts: Sequence[Sequence[int]]) -> PromptState:
        """Prefill: all tokens of the prompts, of any lengths, but the last of each, which is the first of `step`."""
        state, before, position_ids, mask = prefill_inputs(prompts, len(self.blocks), self.embedding.weight.device)
        if before.shape[1]:
            self._run_blocks(before, 0, position_ids, mask, state.caches)
        return state

    @shortlisted
    def step(self, tokens: Tensor, state: PromptState) -> tuple[Tensor, PromptState]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        hidden, state = self.decode_step(tokens, state)
        return self.logits(hidden), state

    def decode_step(self, tokens: Tensor, state: PromptState) -> tuple[Tensor, PromptState]:
        """A step without the output layer: hidden states (B, D)."""
        hidden = self._run_blocks(tokens[:, None], state.length, state.position_ids(), state.mask(), state.caches)
        return hidden[:, 0], state

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """Finds the id with the largest logit for such hidden states without computing all of them."""
        return self.output_layer.argmax_shortlist()

    @property
    def output_layer(self) -> Embedding:
        """What computes the logits."""
        return self.embedding if self.config.tie_embeddings else self.output

    def _run_blocks(
        self,
        ids: Tensor,
        start: int,
        position_ids: Tensor | None,
        mask: Tensor | None,
        caches: list[KVCache] | None = None,
    ) -> Tensor:
        if position_ids is None:
            position_ids = torch.arange(start, start + ids.shape[1], device=ids.device)
        apply_rotary = self.positions(position_ids).apply_rotary
        hidden = self.embedding(ids)
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, apply_rotary, mask, None if caches is None else caches[number])
        return self.norm(hidden)


class Block(nn.Module):
    """Self-attention, then the gated feed-forward network (pre-norm)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.norm_attention = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.attention = SelfAttention(
            config.width, config.heads, num_kv_heads=config.num_kv_heads, bias=config.qkv_bias, output_bias=False
        )
        self.norm_feed_forward = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.feed_forward = GatedFeedForward(config.width, config.feed_forward)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(
        self, hidden: Tensor, apply_rotary: ApplyRotary, mask: Tensor | None, cache: KVCache | None = None
    ) -> Tensor:
        update = self.attention(self.norm_attention(hidden), mask, apply_rotary=apply_rotary, cache=cache)
        hidden = self.after_attention(hidden + update)
        hidden = hidden + self.feed_forward(self.norm_feed_forward(hidden))
        return self.hidden(hidden)
