"""A small GPT with RMS norm: a model of your own, and the recipe that trains it.

    regard train mine.py:recipe data.txt -o runs/mine
    regard run runs/mine "Once upon a time" --trust

Change what you like: regard finds the model, its settings and its inner values by this file alone. A copy of the file
is kept in the run's folder, so import installed packages only, not files beside it.
"""

from pydantic import Field
from torch import Tensor, nn

from regard.data.text_corpus import TextDataConfig
from regard.layers import cost
from regard.layers.attention import SelfAttention
from regard.layers.decoding import PromptState, positions_and_mask, prefill_inputs
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import GatedFeedForward
from regard.layers.initializing import small_normal
from regard.layers.kv_cache import KVCache
from regard.layers.positions import LearnedPositions
from regard.layers.tap import Tap
from regard.models.base import CausalLMConfig, Model
from regard.tasks.language_modeling.data import LanguageModelingRun, prepare
from regard.tasks.language_modeling.task import LanguageModelingConfig
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.training.config import TrainingConfig


class TinyGPTConfig(CausalLMConfig):
    """The settings under `model.`; vocab_size, context and special_ids are there already."""

    width: int = Field(128, ge=1, description="D, the width of the hidden states")
    heads: int = Field(4, ge=1, description="H, attention heads")
    layers: int = Field(2, ge=1, description="number of blocks")

    def flops(self, tokens: int) -> cost.ForwardCost:
        """For `regard cost` and the progress line; a gated feed-forward network has three matrices."""
        block = cost.self_attention(tokens, self.width) + tokens * 3 * self.width * 3 * self.width
        adds = self.layers * block + tokens * self.width * self.vocab_size
        return cost.ForwardCost(adds, self.layers * self.heads * tokens**2, 2 * self.layers * tokens * self.width)


AXES = {"blocks.*.attention": ("text", "text")}  # what each attention looks from, and at


class TinyGPT(Model):
    """`model(ids)` returns logits (B, T, V): at each position, for the next token."""

    config_class = TinyGPTConfig
    interface = "causal_lm"
    attention_axes = AXES
    alignment_taps: tuple[str, ...] = ()

    def __init__(self, config: TinyGPTConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, scaled=False)
        self.positions = LearnedPositions(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=1e-6)
        small_normal(self, config.layers)

    def forward(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        return self.logits(self.hidden_states(ids, document_ids))

    def hidden_states(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """(B, T, D): all but the output layer."""
        position_ids, mask = positions_and_mask(document_ids)
        return self.run_blocks(ids, position_ids, mask)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.embedding.logits(hidden)

    def start(self, prompts: list[list[int]]) -> PromptState:
        """Prefill: all tokens of the prompts but the last of each, which is the first of `step`."""
        state, ids, position_ids, mask = prefill_inputs(prompts, len(self.blocks), self.embedding.weight.device)
        if ids.shape[1]:
            self.run_blocks(ids, position_ids, mask, state.caches)
        return state

    def step(self, tokens: Tensor, state: PromptState) -> tuple[Tensor, PromptState]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        hidden = self.run_blocks(tokens[:, None], state.position_ids(), state.mask(), state.caches)
        return self.logits(hidden[:, 0]), state

    def run_blocks(
        self, ids: Tensor, position_ids: Tensor | None, mask: Tensor | None, caches: list[KVCache] | None = None
    ) -> Tensor:
        start = caches[0].length if caches else 0
        hidden = self.embedding(ids) + self.positions(start, start + ids.shape[1], position_ids)
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, mask, caches[number] if caches else None)
        return self.norm(hidden)

    @property
    def input_embeddings(self) -> Tensor:
        return self.embedding.weight

    @property
    def output_embeddings(self) -> Tensor:
        """The matrix (V, D) of the output layer, for a loss that does not compute all logits at once."""
        return self.embedding.weight


class Block(nn.Module):
    """Self-attention, then a gated feed-forward network, each after an RMS norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_attention, self.norm_feed_forward = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.attention = SelfAttention(width, heads)
        self.feed_forward = GatedFeedForward(width, 3 * width)
        self.hidden = Tap()  # a name for `regard show` and `regard.capture`: blocks.0.hidden

    def forward(self, hidden: Tensor, mask: Tensor | None, cache: KVCache | None) -> Tensor:
        hidden = hidden + self.attention(self.norm_attention(hidden), mask, cache=cache)
        return self.hidden(hidden + self.feed_forward(self.norm_feed_forward(hidden)))


def settings(inputs: TrainingInputs) -> LanguageModelingRun:
    return LanguageModelingRun(
        model=TinyGPTConfig(vocab_size=2048, context=128),
        task=LanguageModelingConfig(),
        data=TextDataConfig(),
        training=TrainingConfig(steps=500, minutes=5, max_tokens=2048, learning_rate=3e-3, evaluate_every=100),
    )


recipe = Recipe("tiny-gpt", settings, prepare, example="Once upon a time")
