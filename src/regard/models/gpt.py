"""GPT: the decoder half of the Transformer, alone, continuing any text.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners" (GPT-2). Each token attends to the tokens
before it and predicts the next; there is no source and no cross-attention. It differs from the 2017 decoder in pre-norm
with one more norm at the end, learned positions, and GELU; from Llama, its modern relative, in nearly every layer, but
not in the wiring. Dropout is on embedding plus position and on the output of each sublayer; GPT-2's third dropout, on
the attention weights, is left out: the fast kernel has none.
"""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.layers import cost
from regard.layers.attention import SelfAttention
from regard.layers.decoding import PromptState, positions_and_mask, prefill_inputs, shortlisted
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import FeedForward
from regard.layers.initializing import small_normal
from regard.layers.kv_cache import KVCache
from regard.layers.positions import LearnedPositions
from regard.layers.tap import Tap
from regard.models.base import CausalLMConfig, CausalLMIds, Model, check_heads
from regard.ops.shortlist import ArgmaxShortlist


class GPTConfig(CausalLMConfig):
    """The config of a GPT; the defaults are those of the smallest GPT-2."""

    width: int = Field(768, ge=1, description="D, the width of the hidden states")
    heads: int = Field(12, ge=1, description="H, attention heads")
    layers: int = Field(12, ge=1, description="number of blocks")
    feed_forward: int | None = Field(None, ge=1, description="inner width of the feed-forward network; none: 4 D")
    activation: Literal["relu", "swish", "gelu", "gelu_tanh"] = Field(
        "gelu_tanh", description="activation of the feed-forward network"
    )
    tie_embeddings: bool = Field(True, description="the embedding matrix is also the output layer")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the activations that are set to zero in training")
    norm_epsilon: float = Field(1e-5, gt=0, description="epsilon of the layer norms")

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        check_heads(self.width, self.heads)
        return self

    def flops(self, tokens: int) -> cost.ForwardCost:
        d, inner = self.width, self.feed_forward or 4 * self.width
        return cost.ForwardCost(
            self.layers * cost.block(tokens, d, inner) + tokens * d * self.vocab_size,
            self.layers * self.heads * tokens * tokens,
            2 * self.layers * tokens * d,
        )


# As published (Radford 2019, table 2).
SIZES = {
    "gpt2": GPTConfig(),
    "gpt2-medium": GPTConfig(width=1024, heads=16, layers=24),
    "gpt2-large": GPTConfig(width=1280, heads=20, layers=36),
    "gpt2-xl": GPTConfig(width=1600, heads=25, layers=48),
}

TINY = {"vocab_size": 40, "context": 32, "width": 24}
EXAMPLES = (
    GPTConfig(**TINY, heads=3, layers=2, special_ids=CausalLMIds(bos_id=1, eos_id=2)),
    GPTConfig(**TINY, heads=1, layers=2, special_ids=CausalLMIds(bos_id=1, eos_id=2), tie_embeddings=False),
    GPTConfig(
        **TINY, heads=4, layers=2, special_ids=CausalLMIds(bos_id=1, eos_id=2), activation="relu", feed_forward=40
    ),
    GPTConfig(**TINY, heads=2, layers=1),  # without special ids
)

AXES = {"blocks.*.attention": ("text", "text")}


class GPT(Model):
    """`model(ids)` returns logits (B, T, V): at each position, for the next token."""

    config_class = GPTConfig
    interface = "causal_lm"
    attention_axes = AXES
    config: GPTConfig
    alignment_taps: tuple[str, ...] = ()

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, scaled=False)
        self.positions = LearnedPositions(config.context, config.width)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        if not config.tie_embeddings:
            self.output = Embedding(config.vocab_size, config.width, scaled=False)
        small_normal(self, config.layers)

    def forward(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) for ids (B, T). With `document_ids`, the documents of a row do not attend to each other."""
        return self.logits(self.hidden_states(ids, document_ids))

    def hidden_states(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """(B, T, D), after the last norm: all but the output layer."""
        position_ids, mask = positions_and_mask(document_ids)
        return self._run_blocks(self._embed(ids, 0, position_ids), mask)

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
            self._run_blocks(self._embed(before, 0, position_ids), mask, state.caches)
        return state

    @shortlisted
    def step(self, tokens: Tensor, state: PromptState) -> tuple[Tensor, PromptState]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        hidden, state = self.decode_step(tokens, state)
        return self.logits(hidden), state

    def decode_step(self, tokens: Tensor, state: PromptState) -> tuple[Tensor, PromptState]:
        """A step without the output layer: hidden states (B, D)."""
        hidden = self._embed(tokens[:, None], state.length, state.position_ids())
        return self._run_blocks(hidden, state.mask(), state.caches)[:, 0], state

    def argmax_shortlist(self) -> ArgmaxShortlist | None:
        """Finds the id with the largest logit for such hidden states without computing all of them."""
        return self.output_layer.argmax_shortlist()

    @property
    def output_layer(self) -> Embedding:
        """What computes the logits."""
        return self.embedding if self.config.tie_embeddings else self.output

    def _embed(self, ids: Tensor, start: int, position_ids: Tensor | None) -> Tensor:
        stop = start + ids.shape[1]
        return self.dropout(self.embedding(ids) + self.positions(start, stop, position_ids))

    def _run_blocks(self, hidden: Tensor, mask: Tensor | None, caches: list[KVCache] | None = None) -> Tensor:
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, mask, None if caches is None else caches[number])
        return self.norm(hidden)


class Block(nn.Module):
    """Self-attention, then feed-forward (pre-norm)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.attention = SelfAttention(config.width, config.heads)
        self.norm_feed_forward = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.feed_forward = FeedForward(config.width, config.feed_forward or 4 * config.width, config.activation)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | None, cache: KVCache | None = None) -> Tensor:
        update = self.dropout(self.attention(self.norm_attention(hidden), mask, cache=cache))
        hidden = self.after_attention(hidden + update)
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)
